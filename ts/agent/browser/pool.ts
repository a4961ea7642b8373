/**
 * Sessions for episodes that run at the same time, in one browser. A session goes back after its episode; one that
 * broke is replaced, and so is a browser that died.
 */

import pLimit from 'p-limit';
import { BoqError } from '../../core/errors.js';
import { type LaunchOptions, launchBrowser, type RunningBrowser } from './launch.js';
import { BrowserSession, type SessionOptions } from './session.js';

/** The browser and its sessions. */
export interface PoolOptions extends LaunchOptions, SessionOptions {
  /** Sessions that may be out at once. */
  size: number;
}

/** One browser whose sessions are lent to episodes, at most `size` at a time. */
export class BrowserPool {
  readonly #options: PoolOptions;
  readonly #slots;
  readonly #launching = pLimit(1);
  #browser: RunningBrowser | null = null;
  #idle: BrowserSession[] = [];
  #closed = false;

  constructor(options: PoolOptions) {
    this.#options = options;
    this.#slots = pLimit(options.size);
  }

  async #live(): Promise<RunningBrowser> {
    return this.#launching(async () => {
      if (this.#closed) throw new BoqError('BOQ_DISPOSED', 'expected an open browser pool, it was closed');
      if (this.#browser?.browser.connected) return this.#browser;
      await this.#browser?.close();
      this.#idle = [];
      this.#browser = await launchBrowser(this.#options);
      return this.#browser;
    });
  }

  /**
   * Runs `work` with a session, as soon as one is free. The session is used again afterwards, unless `work` failed
   * or asked for `fresh` ones: then nothing of it remains.
   */
  use<T>(work: (session: BrowserSession) => Promise<T>, fresh = false): Promise<T> {
    return this.#slots(async () => {
      const browser = await this.#live();
      const session =
        (fresh ? undefined : this.#idle.pop()) ??
        (await BrowserSession.open(browser, { ...this.#options, ownContext: !this.#options.profile }));
      let keep = false;
      try {
        const result = await work(session);
        keep = !fresh && session.usable && browser.browser.connected;
        return result;
      } finally {
        if (keep) this.#idle.push(session);
        else await session.close();
      }
    });
  }

  async close(): Promise<void> {
    this.#closed = true;
    await this.#launching(async () => {
      await this.#browser?.close();
      this.#browser = null;
      this.#idle = [];
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }
}
