/**
 * One tab: the page script in its documents, navigation watched, input, pictures, and settling after an action.
 * Speaks the DevTools protocol directly where that saves round trips.
 */
import type { CDPSession, Page } from 'puppeteer';
import { BoqError } from '../../core/errors.js';
import type { Point } from '../../store/types.js';
import type { ControlInfo } from '../actions/types.js';
import type { Screenshot } from '../types.js';
import { within } from './deadline.js';
import { type KeyName, keyEvents } from './keys.js';
import type { RawObservation } from './page-api.js';
import { pageCall, pageScript } from './page-script.js';
import type { Targets } from './targets.js';

export interface ScreenshotSettings {
  format: 'png' | 'webp' | 'jpeg';
  /** 0 to 100 for webp and jpeg. */
  quality: number;
}

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
  return /context was destroyed|Cannot find context|navigated or closed|Cannot find default execution context|Inspected target|uniqueContextId not found/i.test(
    String((error as Error)?.message),
  );
}

export class Tab {
  readonly page: Page;
  readonly #cdp: CDPSession;
  readonly #limits: TabLimits;
  readonly #targets: Targets;
  #mainFrame = '';
  /** A navigation was asked for or began and has not ended. */
  #navigating = false;
  #onChange: (() => void)[] = [];
  readonly #onCrash = new Set<() => void>();
  /** Windows that the page has opened and that have not arrived yet. */
  openedWindows = 0;
  crashed = false;

  private constructor(page: Page, cdp: CDPSession, limits: TabLimits, targets: Targets) {
    this.#targets = targets;
    this.page = page;
    this.#cdp = cdp;
    this.#limits = limits;
  }

  /** @param note takes what happens to the tab, in sentences. */
  static async attach(
    page: Page,
    limits: TabLimits,
    targets: Targets,
    note: (event: string) => void,
  ): Promise<Tab> {
    const cdp = await page.createCDPSession();
    const tab = new Tab(page, cdp, limits, targets);
    tab.#watch(note);
    const [, frames] = await Promise.all([
      cdp.send('Page.enable'),
      cdp.send('Page.getFrameTree'),
      cdp.send('Emulation.setFocusEmulationEnabled', { enabled: true }),
      // Otherwise a window of the system would wait for a person.
      cdp.send('Page.setInterceptFileChooserDialog', { enabled: true }),
    ]);
    tab.#mainFrame = frames.frameTree.frame.id;
    return tab;
  }

  #watch(note: (event: string) => void): void {
    const changed = (navigating: boolean) => {
      this.#navigating = navigating;
      for (const wake of this.#onChange.splice(0)) wake();
    };
    this.#cdp.on('Page.frameRequestedNavigation', (event) => {
      if (event.frameId === this.#mainFrame && event.disposition === 'currentTab') changed(true);
    });
    this.#cdp.on('Page.frameStartedLoading', (event) => {
      if (event.frameId === this.#mainFrame) changed(true);
    });
    this.#cdp.on('Page.frameStoppedLoading', (event) => {
      if (event.frameId === this.#mainFrame) changed(false);
    });
    this.#cdp.on('Page.frameClearedScheduledNavigation', (event) => {
      if (event.frameId === this.#mainFrame) changed(false);
    });
    this.#cdp.on('Page.downloadWillBegin', () => changed(false));
    this.#cdp.on('Page.fileChooserOpened', () =>
      note('the page asked for a file: write its name into the file field'),
    );
    this.#cdp.on('Page.windowOpen', () => {
      this.openedWindows++;
    });
    const crash = (): void => {
      this.crashed = true;
      changed(false);
      for (const leave of this.#onCrash) leave();
    };
    this.#cdp.on('Inspector.targetCrashed', crash);
    this.page.on('error', crash);
  }

  get url(): string {
    return this.page.url();
  }

  get closed(): boolean {
    return this.page.isClosed();
  }

  /** Whether `error` comes from the tab's closing; waits until it has closed. */
  async closesWith(error: unknown): Promise<boolean> {
    if (this.closed) return true;
    if (this.crashed || !/(Session|Target) closed/.test(String((error as Error)?.message))) return false;
    // A tab does not close apart from a browser that is gone.
    if (!this.page.browser().connected) return false;
    const closed = new Promise<void>((resolve) => this.page.once('close', () => resolve()));
    await within(closed, this.#limits.callMs, 'the tab to close');
    return true;
  }

  async send(method: string, parameters: object = {}, what = method): Promise<unknown> {
    // The protocol's own types are keyed by method name; here methods come from few places and are written out.
    const call = this.#cdp.send(method as 'Page.enable', parameters as never) as Promise<unknown>;
    return this.#answer(call, this.#limits.callMs, what);
  }

  /** Waits for an answer of the browser, at most until the page crashes: some calls are never answered then. */
  async #answer<T>(call: Promise<T>, ms: number, what: string): Promise<T> {
    let leave = (): void => {};
    const crash = new Promise<never>((_, reject) => {
      leave = () => reject(new BoqError('BOQ_BROWSER', 'the page crashed'));
    });
    this.#onCrash.add(leave);
    try {
      return await within(Promise.race([call, crash]), ms, what);
    } finally {
      this.#onCrash.delete(leave);
    }
  }

  /** Runs an expression in the main frame. A document that has no page script yet gets it first. */
  async evaluate<T>(expression: string, ms = this.#limits.callMs): Promise<T> {
    const run = (source: string) =>
      this.#answer(
        this.#cdp.send('Runtime.evaluate', { expression: source, awaitPromise: true, returnByValue: true }),
        ms,
        'an answer of the page',
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

  /** Like evaluate, but waits out navigations that take the document away. */
  async ask<T>(method: string, ...parameters: unknown[]): Promise<T> {
    for (let attempt = 0; ; attempt++) {
      try {
        return await this.evaluate<T>(pageCall(method, ...parameters));
      } catch (error) {
        if (attempt >= 3 || !isContextLost(error)) throw error;
        await this.#loaded(this.#limits.loadMs);
      }
    }
  }

  async observe(): Promise<RawObservation> {
    const observation = await this.ask<RawObservation>('observe');
    for (const frame of await this.#foreignFrames()) {
      const inner = await this.#askFrame<RawObservation>(frame.session, 'observe').catch(() => null);
      for (const element of inner?.elements ?? []) {
        const box = { ...element.box, x: element.box.x + frame.box.x, y: element.box.y + frame.box.y };
        const inside = box.x < frame.box.x + frame.box.width && box.y < frame.box.y + frame.box.height;
        if (inside) observation.elements.push({ ...element, id: observation.elements.length, box });
      }
    }
    return observation;
  }

  control(point: Point): Promise<ControlInfo> {
    return this.askAt<ControlInfo>('control', point);
  }

  /** Like ask, for a function that begins with a point: answered by the frame that shows it. */
  async askAt<T>(method: string, point: Point, ...parameters: unknown[]): Promise<T> {
    for (const { session, box } of await this.#foreignFrames()) {
      const [x, y] = [point.x - box.x, point.y - box.y];
      if (x >= 0 && y >= 0 && x < box.width && y < box.height) {
        return this.#askFrame<T>(session, method, x, y, ...parameters);
      }
    }
    return this.ask<T>(method, point.x, point.y, ...parameters);
  }

  async #askFrame<T>(session: CDPSession, method: string, ...parameters: unknown[]): Promise<T> {
    const call = session.send('Runtime.evaluate', {
      expression: pageCall(method, ...parameters),
      awaitPromise: true,
      returnByValue: true,
    });
    const reply = await within(call, this.#limits.callMs, 'an answer of a frame');
    if (reply.exceptionDetails)
      throw new BoqError('BOQ_BROWSER', 'expected a frame to answer, it raised an error');
    return reply.result.value as T;
  }

  /** Frames of other sites with their place in the viewport. Frames inside such frames are not looked into. */
  async #foreignFrames(): Promise<
    { session: CDPSession; box: { x: number; y: number; width: number; height: number } }[]
  > {
    const frames = this.#targets.framesIn(this.#mainFrame);
    if (frames.size === 0) return [];
    const places = await Promise.all(
      [...frames].map(async ([frameId, session]) => {
        try {
          const owner = await this.#cdp.send('DOM.getFrameOwner', { frameId });
          const { model } = await this.#cdp.send('DOM.getBoxModel', { backendNodeId: owner.backendNodeId });
          const [x = 0, y = 0, right = 0, , , bottom = 0] = model.content;
          return { session, box: { x, y, width: right - x, height: bottom - y } };
        } catch {
          return null;
        }
      }),
    );
    return places.filter((place) => place !== null);
  }

  async #loaded(ms: number): Promise<boolean> {
    const deadline = Date.now() + ms;
    while (this.#navigating && !this.crashed && !this.closed) {
      const left = deadline - Date.now();
      if (left <= 0) {
        // Taken as it is from now on; the next navigation is waited for again.
        this.#navigating = false;
        return false;
      }
      await within(new Promise<void>((resolve) => this.#onChange.push(resolve)), left, 'the page').catch(
        () => undefined,
      );
    }
    return true;
  }

  /** Waits until the consequences of what was done are there, within the limits. Never throws for page behaviour. */
  async settle(): Promise<void> {
    for (let round = 0; round < 4 && !this.crashed && !this.closed; round++) {
      await this.#loaded(this.#limits.loadMs);
      try {
        await this.evaluate<string>(pageCall('settle', this.#limits.settleMs), this.#limits.settleMs + 2000);
        if (!this.#navigating) return;
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
      const reply = (await this.#answer(
        this.#cdp.send('Page.navigate', { url }),
        this.#limits.loadMs,
        `an answer from ${url}`,
      )) as { errorText?: string };
      if (reply.errorText && reply.errorText !== 'net::ERR_ABORTED') return reply.errorText;
    } catch (error) {
      if (this.crashed) return 'the page crashed';
      if (error instanceof BoqError && error.code === 'BOQ_TIMEOUT') {
        await this.send('Page.stopLoading').catch(() => undefined);
        return error.message;
      }
      throw error;
    }
    await this.settle();
    return null;
  }

  /** Loads an address in place of a page that crashed. @returns false where that crashes or does not load */
  async revive(url: string): Promise<boolean> {
    this.crashed = false;
    const fault = await this.goto(url);
    return fault === null && !this.crashed;
  }

  async reload(): Promise<void> {
    this.#navigating = true;
    await this.send('Page.reload', {}, 'the page to load again');
    await this.settle();
  }

  /** @returns false where there is no earlier page. */
  async goBack(): Promise<boolean> {
    const history = (await this.send('Page.getNavigationHistory')) as {
      currentIndex: number;
      entries: { id: number }[];
    };
    const earlier = history.entries[history.currentIndex - 1];
    if (!earlier) return false;
    await this.send('Page.navigateToHistoryEntry', { entryId: earlier.id });
    await this.settle();
    return true;
  }

  /** Forgets earlier pages, so that nothing can lead back into another episode. */
  async forgetHistory(): Promise<void> {
    await this.send('Page.resetNavigationHistory');
  }

  async mouse(
    type: 'mouseMoved' | 'mousePressed' | 'mouseReleased',
    point: Point,
    more: object = {},
  ): Promise<void> {
    await this.send('Input.dispatchMouseEvent', { type, x: point.x, y: point.y, ...more }, 'the mouse');
  }

  async click(point: Point): Promise<void> {
    const left = { button: 'left', clickCount: 1 };
    await this.mouse('mouseMoved', point);
    const aim = (await this.ask<Point | null>('aim', point.x, point.y)) ?? point;
    // The protocol keeps the order; not waiting in between saves a round trip.
    await Promise.all([
      this.mouse('mousePressed', aim, { ...left, buttons: 1 }),
      this.mouse('mouseReleased', aim, left),
    ]);
  }

  async drag(from: Point, to: Point): Promise<void> {
    const left = { button: 'left', clickCount: 1 };
    await this.mouse('mouseMoved', from);
    await this.mouse('mousePressed', from, { ...left, buttons: 1 });
    // Libraries tell a drag from a click by its way.
    const steps = 8;
    for (let step = 1; step <= steps; step++) {
      const point = {
        x: from.x + ((to.x - from.x) * step) / steps,
        y: from.y + ((to.y - from.y) * step) / steps,
      };
      await this.mouse('mouseMoved', point, { button: 'left', buttons: 1 });
    }
    await this.mouse('mouseReleased', to, left);
  }

  /** Hands a file to the file field at the point. */
  async giveFile(point: Point, path: string): Promise<boolean> {
    const found = await within(
      this.#cdp.send('Runtime.evaluate', { expression: pageCall('fileFieldAt', point.x, point.y) }),
      this.#limits.callMs,
      'the file field',
    );
    if (!found.result.objectId) return false;
    await this.send('DOM.setFileInputFiles', { files: [path], objectId: found.result.objectId });
    return true;
  }

  async press(key: KeyName): Promise<void> {
    await Promise.all(
      keyEvents(key).map((event) => this.send('Input.dispatchKeyEvent', event, 'the keyboard')),
    );
  }

  /** Types into the focused field. Pages that listen to keys see them, except within very long texts. */
  async type(text: string): Promise<void> {
    const byKey = text.length <= 120 ? text : text.slice(-1);
    const head = text.slice(0, text.length - byKey.length);
    if (head) await this.send('Input.insertText', { text: head });
    const events = Array.from(byKey).flatMap((character) => keyEvents(character));
    await Promise.all(events.map((event) => this.send('Input.dispatchKeyEvent', event, 'the keyboard')));
  }

  async screenshot(settings: ScreenshotSettings): Promise<Screenshot> {
    const take = () =>
      this.#cdp.send('Page.captureScreenshot', {
        format: settings.format,
        ...(settings.format === 'png' ? {} : { quality: settings.quality }),
        optimizeForSpeed: true,
        captureBeyondViewport: false,
      });
    let picture: { data: string };
    try {
      picture = await this.#answer(take(), Math.min(5000, this.#limits.callMs), 'a screenshot');
    } catch (error) {
      if (this.crashed || this.closed) throw error;
      // A window in the background may stop drawing; in front it draws again.
      await this.send('Page.bringToFront');
      picture = await this.#answer(take(), this.#limits.callMs, 'a screenshot');
    }
    const bytes = Buffer.from(picture.data, 'base64');
    const { width, height } = imageSize(bytes, settings.format);
    return { bytes, format: settings.format, width, height };
  }

  async detach(): Promise<void> {
    await this.#cdp.detach().catch(() => undefined);
  }
}

/** Width and height from the header of what the browser wrote. */
export function imageSize(
  bytes: Buffer,
  format: ScreenshotSettings['format'],
): { width: number; height: number } {
  if (format === 'png') return { width: bytes.readUInt32BE(16), height: bytes.readUInt32BE(20) };
  if (format === 'webp') {
    const kind = bytes.toString('latin1', 12, 16);
    if (kind === 'VP8X') return { width: bytes.readUIntLE(24, 3) + 1, height: bytes.readUIntLE(27, 3) + 1 };
    if (kind === 'VP8L') {
      const bits = bytes.readUInt32LE(21);
      return { width: (bits & 0x3fff) + 1, height: ((bits >> 14) & 0x3fff) + 1 };
    }
    return { width: bytes.readUInt16LE(26) & 0x3fff, height: bytes.readUInt16LE(28) & 0x3fff };
  }
  for (let at = 2; at < bytes.length; ) {
    const marker = bytes[at + 1] ?? 0;
    if (marker >= 0xc0 && marker <= 0xcf && ![0xc4, 0xc8, 0xcc].includes(marker)) {
      return { width: bytes.readUInt16BE(at + 7), height: bytes.readUInt16BE(at + 5) };
    }
    at += 2 + bytes.readUInt16BE(at + 2);
  }
  throw new BoqError('BOQ_BROWSER', 'expected a picture with a frame header, found none');
}
