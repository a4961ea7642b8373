/** A deadline that moves: something is expected within a time, and what was not is remembered. */
export class Watch {
  readonly #stop = new AbortController();
  readonly #caller: AbortSignal | undefined;
  readonly #follow = (): void => this.#stop.abort(this.#caller?.reason);
  #timer: NodeJS.Timeout | undefined;
  #missed = '';

  /** @param caller aborts as well */
  constructor(caller?: AbortSignal) {
    this.#caller = caller;
    caller?.addEventListener('abort', this.#follow);
    if (caller?.aborted) this.#follow();
  }

  /** Aborts at the deadline or with the caller. */
  get signal(): AbortSignal {
    return this.#stop.signal;
  }

  /** What did not come in time; '' where all did. */
  get missed(): string {
    return this.#missed;
  }

  /** Starts the clock anew. */
  expect(ms: number, missed: string): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => {
      this.#missed = missed;
      this.#stop.abort(new Error(missed));
    }, ms);
  }

  end(): void {
    clearTimeout(this.#timer);
    this.#caller?.removeEventListener('abort', this.#follow);
  }
}
