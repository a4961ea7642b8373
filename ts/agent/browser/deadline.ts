/** Waiting with a limit. */
import { BoqError } from '../../core/errors.js';

/** @throws BoqError BOQ_TIMEOUT after `ms`, naming `what`; BOQ_ABORTED when the signal fires first. */
export async function within<T>(
  promise: Promise<T>,
  ms: number,
  what: string,
  signal?: AbortSignal,
): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  let onAbort: (() => void) | undefined;
  const limit = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new BoqError('BOQ_TIMEOUT', `expected ${what} within ${ms} ms`)), ms);
    if (signal) {
      onAbort = () => reject(new BoqError('BOQ_ABORTED', `${what} was aborted`, { cause: signal.reason }));
      if (signal.aborted) onAbort();
      else signal.addEventListener('abort', onAbort, { once: true });
    }
  });
  promise.catch(() => undefined);
  try {
    return await Promise.race([promise, limit]);
  } finally {
    clearTimeout(timer);
    if (onAbort) signal?.removeEventListener('abort', onAbort);
  }
}
