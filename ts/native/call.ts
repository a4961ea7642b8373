/** One native call: an AbortSignal becomes a cancel token, a native failure becomes a BoqError. */
import { BoqError, type BoqErrorCode, nativeErrorCodes } from '../core/errors.js';
import { loadAddon } from './load.js';
import type { AddonCancelToken } from './surface.js';

export interface CallOptions {
  /** Ends the job at its next check: between items, layers or gradient steps. */
  signal?: AbortSignal | undefined;
}

const knownCodes: ReadonlySet<string> = new Set(nativeErrorCodes);

function isNativeFailure(error: unknown): error is Error & { code: BoqErrorCode } {
  return (
    error instanceof Error && 'code' in error && typeof error.code === 'string' && knownCodes.has(error.code)
  );
}

/**
 * Runs `start`. A failure that C++ made is thrown as a BoqError with the stack of whoever called `caller`, which
 * an error born on another thread does not have. Anything else, such as what a progress callback threw, passes.
 */
export async function callNative<T>(
  start: (token: AddonCancelToken | undefined) => Promise<T>,
  { signal }: CallOptions,
  caller: (...args: never[]) => unknown,
): Promise<T> {
  const failure: { stack?: string } = {};
  Error.captureStackTrace(failure, caller);
  try {
    return await withToken(start, signal);
  } catch (cause) {
    if (!isNativeFailure(cause)) throw cause;
    const error = new BoqError(cause.code, cause.message, { cause });
    const frames = failure.stack?.slice(failure.stack.indexOf('\n')) ?? '';
    error.stack = `BoqError: ${cause.message}${frames}`;
    throw error;
  }
}

async function withToken<T>(
  start: (token: AddonCancelToken | undefined) => Promise<T>,
  signal: AbortSignal | undefined,
): Promise<T> {
  if (signal === undefined) return start(undefined);
  if (signal.aborted) {
    throw new BoqError('BOQ_ABORTED', 'the operation was aborted before it began', { cause: signal.reason });
  }
  const token = loadAddon().createCancelToken();
  const cancel = (): void => token.cancel();
  signal.addEventListener('abort', cancel, { once: true });
  try {
    return await start(token);
  } finally {
    signal.removeEventListener('abort', cancel);
  }
}
