/**
 * The line to one tab: calls of the DevTools protocol and expressions in its main frame, each with a limit, and each
 * ended when the page crashes. Speaking the protocol directly saves round trips.
 */
import type { CDPSession, Page } from 'puppeteer';
import { BoqError } from '../../core/errors.js';
import { within } from './deadline.js';
import { pageScript } from './page-script.js';

/** One tab's session, for as long as the tab is open. */
export class Channel {
  readonly page: Page;
  readonly session: CDPSession;
  /** Longest wait for one answer of the browser, in milliseconds. */
  readonly callMs: number;
  /** Ends each call that waits for an answer. */
  readonly #waiting = new Set<() => void>();
  #crashed = false;

  constructor(page: Page, session: CDPSession, callMs: number) {
    this.page = page;
    this.session = session;
    this.callMs = callMs;
    this.onCrash(() => {
      this.#crashed = true;
      for (const leave of this.#waiting) leave();
    });
  }

  get crashed(): boolean {
    return this.#crashed;
  }

  get closed(): boolean {
    return this.page.isClosed();
  }

  /** True while there is a page that could answer. */
  get isAlive(): boolean {
    return !this.#crashed && !this.closed;
  }

  /** Calls `listener` at every crash of the page, from now on. */
  onCrash(listener: () => void): void {
    this.session.on('Inspector.targetCrashed', listener);
    this.page.on('error', listener);
  }

  /** Takes the page as sound again, before another document is loaded in its place. */
  forgetCrash(): void {
    this.#crashed = false;
  }

  /** Whether `error` comes from the tab's closing; waits until it has closed. */
  async closesWith(error: unknown): Promise<boolean> {
    if (this.closed) return true;
    if (this.#crashed || !/(Session|Target) closed/.test(String((error as Error)?.message))) return false;
    // A tab does not close apart from a browser that is gone.
    if (!this.page.browser().connected) return false;
    const closed = new Promise<void>((resolve) => this.page.once('close', () => resolve()));
    await within(closed, this.callMs, 'the tab to close');
    return true;
  }

  /**
   * Makes a call and waits for its answer, at most until the page crashes: some are never answered then.
   * @param what what is waited for, as the message of a timeout names it
   * @throws BoqError BOQ_TIMEOUT after `ms`; BOQ_BROWSER where the page crashes; the protocol's own errors as they are
   */
  async call<T>(
    request: (session: CDPSession) => Promise<T>,
    what: string,
    ms: number = this.callMs,
  ): Promise<T> {
    let leave = (): void => {};
    const crash = new Promise<never>((_, reject) => {
      leave = () => reject(new BoqError('BOQ_BROWSER', 'the page crashed'));
    });
    this.#waiting.add(leave);
    try {
      return await within(Promise.race([request(this.session), crash]), ms, what);
    } finally {
      this.#waiting.delete(leave);
    }
  }

  /**
   * Runs an expression in the main frame and waits for its value, which must be JSON. A document that has no page
   * script yet gets it first.
   * @throws BoqError BOQ_BROWSER where the expression throws; as {@link call}
   */
  async evaluate<T>(expression: string, ms: number = this.callMs): Promise<T> {
    const run = (source: string) =>
      this.call(
        (session) =>
          session.send('Runtime.evaluate', { expression: source, awaitPromise: true, returnByValue: true }),
        'an answer of the page',
        ms,
      );
    let reply = await run(expression);
    if (reply.exceptionDetails?.exception?.description?.includes('Cannot read properties of undefined')) {
      reply = await run(`(${pageScript}), ${expression}`);
    }
    if (reply.exceptionDetails) {
      const { exception, text } = reply.exceptionDetails;
      throw new BoqError(
        'BOQ_BROWSER',
        `expected the page to run a script, but ${exception?.description ?? text}`,
      );
    }
    return reply.result.value as T;
  }

  /** Puts the tab in front of the others of its window; one behind may stop drawing. */
  async bringToFront(): Promise<void> {
    await this.call((session) => session.send('Page.bringToFront'), 'the tab to come to the front');
  }
}
