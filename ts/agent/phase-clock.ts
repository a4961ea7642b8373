/** Where the time of a step goes. */

/** Milliseconds by phase, each from the end of the one before, to a tenth. */
export class PhaseClock {
  readonly phases: Record<string, number> = {};
  #last = performance.now();

  /** The phase that began with the last `end` or `restart` is over. */
  end(phase: string): void {
    const now = performance.now();
    this.phases[phase] = Math.round((now - this.#last) * 10) / 10;
    this.#last = now;
  }

  /** Leaves out what has passed since the last phase. */
  restart(): void {
    this.#last = performance.now();
  }
}
