/**
 * Requests to a model hub: the user's token, patience with an overloaded server, and one form of error. Waiting and
 * trying again is for what passes by itself; what does not is said at once, with what to do.
 */
import { BoqError } from '../core/errors.js';

export interface HubSettings {
  /** e.g. https://huggingface.co, without a slash at its end. */
  endpoint: string;
  token: string | undefined;
  /** Attempts at one request. */
  attempts: number;
  /** Wait before the second attempt; it doubles with each further one. */
  retryMs: number;
  /** An answer that stops for so long counts as lost. */
  stallMs: number;
}

/** Passes by itself: overload, timeouts, a gateway that restarts. */
const passing = new Set([408, 425, 429, 500, 502, 503, 504]);

export class HubClient {
  readonly settings: HubSettings;
  readonly #signal: AbortSignal | undefined;

  constructor(settings: HubSettings, signal?: AbortSignal) {
    this.settings = settings;
    this.#signal = signal;
  }

  /** `fetch` as the hub's client library takes it: with the token, and tried again while a fault may pass. */
  readonly fetch: typeof fetch = (input, init) =>
    this.retry(String(input), (signal) => this.request(String(input), { ...init, signal }));

  /**
   * One request with the token.
   *
   * @throws PassingFault where the answer says that a later one may be better.
   */
  async request(url: string, init: RequestInit): Promise<Response> {
    const headers = new Headers(init.headers);
    // The standard drops this header when the hub sends the client on to another host.
    if (this.settings.token !== undefined) headers.set('authorization', `Bearer ${this.settings.token}`);
    const response = await fetch(url, { ...init, headers });
    if (!passing.has(response.status)) return response;
    await response.body?.cancel();
    throw new PassingFault(`status ${response.status}`, retryAfterMs(response));
  }

  /**
   * Runs `attempt` until it succeeds, fails for good, or has been tried often enough. Network failures and
   * {@link PassingFault} are tried again, everything else passes on.
   */
  async retry<T>(what: string, attempt: (signal: AbortSignal) => Promise<T>): Promise<T> {
    const { attempts, retryMs } = this.settings;
    for (let count = 1; ; count++) {
      this.#throwIfAborted();
      const own = new AbortController();
      const signal = this.#signal === undefined ? own.signal : AbortSignal.any([own.signal, this.#signal]);
      try {
        return await attempt(signal);
      } catch (error) {
        this.#throwIfAborted();
        if (!isPassing(error)) throw error;
        if (count >= attempts) throw hubFailure(what, `${reasonOf(error)}, ${attempts} times`, error);
        const wait = error instanceof PassingFault ? error.waitMs : undefined;
        await this.#pause(wait ?? retryMs * 2 ** (count - 1));
      }
    }
  }

  #throwIfAborted(): void {
    if (this.#signal?.aborted) {
      throw new BoqError('BOQ_ABORTED', 'fetching was stopped; the same command goes on where it ended');
    }
  }

  #pause(milliseconds: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(done, milliseconds);
      const signal = this.#signal;
      function done(): void {
        clearTimeout(timer);
        signal?.removeEventListener('abort', done);
        resolve();
      }
      signal?.addEventListener('abort', done, { once: true });
    });
  }
}

/** A failure that is worth another attempt, after `waitMs` where the server said so. */
export class PassingFault extends Error {
  readonly waitMs: number | undefined;

  constructor(message: string, waitMs?: number) {
    super(message);
    this.waitMs = waitMs;
  }
}

function isPassing(error: unknown): boolean {
  if (error instanceof PassingFault) return true;
  if (error instanceof BoqError || !(error instanceof Error)) return false;
  // fetch says "fetch failed" or "terminated" as TypeError and keeps the socket's error as its cause.
  const { cause } = error as { cause?: { code?: string } };
  if (cause?.code === 'ENOTFOUND' || cause?.code === 'ERR_INVALID_URL') return false;
  return error instanceof TypeError && (error.message === 'fetch failed' || error.message === 'terminated');
}

function reasonOf(error: unknown): string {
  const { message, cause } = error as Error & { cause?: Error };
  return cause?.message ? `${message} (${cause.message})` : message;
}

/** Seconds or a date, as HTTP allows; at most a minute. */
function retryAfterMs(response: Response): number | undefined {
  const text = response.headers.get('retry-after');
  if (text === null) return undefined;
  const seconds = /^\d+$/.test(text) ? Number(text) : (Date.parse(text) - Date.now()) / 1000;
  return Number.isFinite(seconds) ? Math.min(Math.max(seconds, 0), 60) * 1000 : undefined;
}

export function hubFailure(what: string, why: string, cause?: unknown): BoqError {
  return new BoqError('BOQ_HUB', `${what}: ${why}`, { cause });
}

/** The one sentence that a refused request deserves. */
export function refusal(id: string, status: number): BoqError {
  switch (status) {
    case 401:
    case 403:
      return hubFailure(
        id,
        `the hub refused access (status ${status}). If the model is gated, accept its licence on its page, then set HF_TOKEN to a token of that account`,
      );
    case 404:
      return hubFailure(id, 'the hub knows no such model, revision or file; check the spelling');
    default:
      return hubFailure(id, `the hub answered with status ${status}`);
  }
}
