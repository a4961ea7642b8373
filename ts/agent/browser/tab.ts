/**
 * One tab: its page script asked in the right document, its navigations, and settling after an action. Beside it:
 * the line to the browser (channel), loading, frames of other sites, input and pictures.
 */
import type { Page } from 'puppeteer';
import { BoqError } from '../../core/errors.js';
import type { Point } from '../../store/types.js';
import type { ControlInfo } from '../actions/types.js';
import type { Screenshot } from '../types.js';
import { Channel } from './channel.js';
import { type ForeignFrame, foreignFrames } from './foreign-frames.js';
import { Input } from './input.js';
import { Loading } from './loading.js';
import type { RawObservation } from './page-api.js';
import { pageCall } from './page-script.js';
import { type ScreenshotSettings, takePicture } from './picture.js';
import type { Targets } from './targets.js';

/** All in milliseconds. */
export interface TabLimits {
  /** Longest wait for a page to load. */
  loadMs: number;
  /** Longest wait for the consequences of an action. */
  settleMs: number;
  /** Longest wait for one answer of the browser. */
  callMs: number;
}

/** The document went away while it was asked: a navigation is on its way. */
function isContextLost(error: unknown): boolean {
  return /context was destroyed|Cannot find context|navigated or closed|Cannot find default execution context|Inspected target|uniqueContextId not found|Not attached to an active page/i.test(
    String((error as Error)?.message),
  );
}

/** A tab, from its first document on. Points are viewport CSS pixels. */
export class Tab {
  /** Mouse, keyboard and file fields. */
  readonly input: Input;
  readonly #channel: Channel;
  readonly #loading: Loading;
  readonly #limits: TabLimits;
  readonly #targets: Targets;
  readonly #mainFrame: string;
  /** Windows that the page has opened and that have not arrived yet. */
  openedWindows = 0;

  private constructor(channel: Channel, limits: TabLimits, targets: Targets, mainFrame: string) {
    this.#channel = channel;
    this.#limits = limits;
    this.#targets = targets;
    this.#mainFrame = mainFrame;
    this.#loading = new Loading(channel, mainFrame);
    this.input = new Input(channel, ({ x, y }) => this.ask<Point | null>('aim', x, y));
  }

  /** @param note takes what happens to the tab, in sentences. */
  static async attach(
    page: Page,
    limits: TabLimits,
    targets: Targets,
    note: (event: string) => void,
  ): Promise<Tab> {
    const session = await page.createCDPSession();
    const channel = new Channel(page, session, limits.callMs);
    const { frameTree } = await session.send('Page.getFrameTree');
    const tab = new Tab(channel, limits, targets, frameTree.frame.id);
    session.on('Page.fileChooserOpened', () =>
      note('the page asked for a file: write its name into the file field'),
    );
    session.on('Page.windowOpen', () => {
      tab.openedWindows++;
    });
    await Promise.all([
      session.send('Page.enable'),
      session.send('Emulation.setFocusEmulationEnabled', { enabled: true }),
      // Otherwise a window of the system would wait for a person.
      session.send('Page.setInterceptFileChooserDialog', { enabled: true }),
    ]);
    return tab;
  }

  get page(): Page {
    return this.#channel.page;
  }

  get url(): string {
    return this.page.url();
  }

  get closed(): boolean {
    return this.#channel.closed;
  }

  get crashed(): boolean {
    return this.#channel.crashed;
  }

  /** Whether `error` comes from the tab's closing; waits until it has closed. */
  closesWith(error: unknown): Promise<boolean> {
    return this.#channel.closesWith(error);
  }

  /**
   * Runs an expression in the main frame and waits for its value, which must be JSON.
   * @param ms longest wait; default the limit on one answer
   * @throws BoqError BOQ_BROWSER where it throws or the page crashes; BOQ_TIMEOUT; the protocol's own errors as they are
   */
  evaluate<T>(expression: string, ms?: number): Promise<T> {
    return this.#channel.evaluate<T>(expression, ms);
  }

  /** Calls a function of the page script in the main frame; waits out navigations that take the document away. */
  ask<T>(method: string, ...parameters: unknown[]): Promise<T> {
    return this.#throughNavigations(() => this.evaluate<T>(pageCall(method, ...parameters)));
  }

  /** Begins again where a navigation takes the document away in between. */
  async #throughNavigations<T>(request: () => Promise<T>): Promise<T> {
    for (let attempt = 0; ; attempt++) {
      try {
        return await request();
      } catch (error) {
        if (attempt >= 3 || !isContextLost(error)) throw error;
        await this.#loading.ended(this.#limits.loadMs);
      }
    }
  }

  /** Like ask, for a function that begins with a point: answered by the frame that shows it. */
  async askAt<T>(method: string, point: Point, ...parameters: unknown[]): Promise<T> {
    for (const frame of await this.#foreignFrames()) {
      const inside = frame.inside(point);
      if (inside) return frame.ask<T>(method, inside.x, inside.y, ...parameters);
    }
    return this.ask<T>(method, point.x, point.y, ...parameters);
  }

  /** What the page shows, with the elements of frames of other sites as far as they begin inside their frame. */
  async observe(): Promise<RawObservation> {
    const observation = await this.ask<RawObservation>('observe');
    for (const frame of await this.#foreignFrames()) {
      const inner = await frame.ask<RawObservation>('observe').catch(() => null);
      for (const element of inner?.elements ?? []) {
        const box = { ...element.box, x: element.box.x + frame.box.x, y: element.box.y + frame.box.y };
        const inside = box.x < frame.box.x + frame.box.width && box.y < frame.box.y + frame.box.height;
        if (inside) observation.elements.push({ ...element, id: observation.elements.length, box });
      }
    }
    return observation;
  }

  /** What lies under a point. */
  control(point: Point): Promise<ControlInfo> {
    return this.askAt<ControlInfo>('control', point);
  }

  #foreignFrames(): Promise<ForeignFrame[]> {
    return foreignFrames(this.#channel, this.#targets.framesIn(this.#mainFrame));
  }

  screenshot(settings: ScreenshotSettings): Promise<Screenshot> {
    return this.#throughNavigations(() => takePicture(this.#channel, settings));
  }

  /** Waits until the consequences of what was done are there, within the limits. Never throws for page behaviour. */
  async settle(): Promise<void> {
    const { loadMs, settleMs } = this.#limits;
    for (let round = 0; round < 4 && this.#channel.isAlive; round++) {
      await this.#loading.ended(loadMs);
      try {
        await this.evaluate<string>(pageCall('settle', settleMs), settleMs + 2000);
        if (!this.#loading.isUnderWay) return;
      } catch (error) {
        if (!isContextLost(error)) return;
      }
    }
  }

  /**
   * Loads an address and waits for its document.
   * @returns what went wrong ('net::ERR_...'), or null.
   */
  async goto(url: string): Promise<string | null> {
    try {
      const { errorText } = await this.#channel.call(
        (session) => session.send('Page.navigate', { url }),
        `an answer from ${url}`,
        this.#limits.loadMs,
      );
      if (errorText && errorText !== 'net::ERR_ABORTED') return errorText;
    } catch (error) {
      if (this.crashed) return 'the page crashed';
      if (error instanceof BoqError && error.code === 'BOQ_TIMEOUT') {
        const stop = this.#channel.call((session) => session.send('Page.stopLoading'), 'the page to stop');
        await stop.catch(() => undefined);
        return error.message;
      }
      throw error;
    }
    await this.settle();
    return null;
  }

  /** Loads an address in place of a page that crashed. @returns false where that crashes or does not load */
  async revive(url: string): Promise<boolean> {
    this.#channel.forgetCrash();
    const fault = await this.goto(url);
    return fault === null && !this.crashed;
  }

  async reload(): Promise<void> {
    this.#loading.expect();
    await this.#channel.call((session) => session.send('Page.reload'), 'the page to load again');
    await this.settle();
  }

  /** @returns false where there is no earlier page. */
  async goBack(): Promise<boolean> {
    const { currentIndex, entries } = await this.#channel.call(
      (session) => session.send('Page.getNavigationHistory'),
      'the history of the tab',
    );
    const earlier = entries[currentIndex - 1];
    if (!earlier) return false;
    await this.#channel.call(
      (session) => session.send('Page.navigateToHistoryEntry', { entryId: earlier.id }),
      'the earlier page',
    );
    await this.settle();
    return true;
  }

  /** Forgets earlier pages, so that nothing can lead back into another episode. */
  async forgetHistory(): Promise<void> {
    await this.#channel.call(
      (session) => session.send('Page.resetNavigationHistory'),
      'the history to be forgotten',
    );
  }

  /** CSS pixels, and image pixels to one of them. */
  async setViewport({
    width,
    height,
    deviceScaleFactor,
  }: {
    width: number;
    height: number;
    deviceScaleFactor: number;
  }): Promise<void> {
    const metrics = { width, height, deviceScaleFactor, mobile: false };
    await this.#channel.call(
      (session) => session.send('Emulation.setDeviceMetricsOverride', metrics),
      'the viewport',
    );
  }

  /** Puts the tab in front of the others of its window; one behind may stop drawing. */
  bringToFront(): Promise<void> {
    return this.#channel.bringToFront();
  }
}
