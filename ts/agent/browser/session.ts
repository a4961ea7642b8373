/**
 * One agent's browser window: its tabs, dialogs and downloads, what it sees and what it can do. Sessions of one
 * browser share nothing: each has its own context with its own cookies.
 */
import { existsSync } from 'node:fs';
import { basename, resolve, sep } from 'node:path';
import type { BrowserContext, Cookie, CookieData, Page } from 'puppeteer';
import { BoqError } from '../../core/errors.js';
import type { Point } from '../../store/types.js';
import type { ActionSurface, ControlInfo } from '../actions/types.js';
import { describeElements } from '../elements.js';
import type { Consequence, Observation } from '../types.js';
import { within } from './deadline.js';
import type { DomainPolicy } from './domain-policy.js';
import type { KeyName } from './keys.js';
import type { RunningBrowser } from './launch.js';
import type { ScreenshotSettings } from './picture.js';
import { Tab, type TabLimits } from './tab.js';
import { leavingNote, type Targets } from './targets.js';

/** What a session shows and allows. */
export interface SessionOptions {
  viewport?: { width: number; height: number; deviceScaleFactor?: number };
  /** Default PNG: what was seen, to the pixel, and of small pages the quickest to make. */
  screenshot?: ScreenshotSettings;
  limits?: Partial<TabLimits>;
  /** False to use the browser's own profile, with its cookies, instead of an empty context. */
  ownContext?: boolean;
  /** Where the agent may go; everywhere where left out. */
  policy?: DomainPolicy;
  /** Folder that downloads are written to; refused where left out. */
  downloads?: string;
  /** Folder whose files may be given to file fields; none where left out. */
  uploads?: string;
  /** Name and password for pages of one origin that ask for them before they show anything (basic authentication). */
  credentials?: Credentials;
}

/** A name and a password for one origin. */
export interface Credentials {
  username: string;
  password: string;
  /** Where they may go, such as https://intranet.example:8443. */
  origin: string;
}

/** Crashes of pages within one episode; more are a fault of the machine. */
const crashesAllowed = 5;

const defaultLimits: TabLimits = { loadMs: 15_000, settleMs: 3_000, callMs: 20_000 };

/** One window of its own: its tabs, its cookies, and what actions may do to it. */
export class BrowserSession implements ActionSurface {
  readonly #context: BrowserContext;
  readonly #screenshot: ScreenshotSettings;
  readonly #limits: TabLimits;
  readonly #targets: Targets;
  readonly #policy: DomainPolicy | null;
  readonly #uploads: string | null;
  readonly #ownContext: boolean;
  #viewport: { width: number; height: number; deviceScaleFactor: number };
  #tabs: Tab[] = [];
  #active: Tab | null = null;
  #arriving: Promise<void>[] = [];
  #events: string[] = [];
  #lastPoint: Point = { x: 0, y: 0 };
  #crashes = 0;
  startUrl = 'about:blank';

  private constructor(context: BrowserContext, targets: Targets, options: SessionOptions) {
    this.#context = context;
    this.#targets = targets;
    this.#policy = options.policy ?? null;
    this.#uploads = options.uploads ? resolve(options.uploads) : null;
    this.#ownContext = options.ownContext ?? true;
    const { width = 1280, height = 720, deviceScaleFactor = 1 } = options.viewport ?? {};
    this.#viewport = { width, height, deviceScaleFactor };
    this.#screenshot = options.screenshot ?? { format: 'png', quality: 100 };
    this.#limits = { ...defaultLimits, ...options.limits };
  }

  static async open(running: RunningBrowser, options: SessionOptions = {}): Promise<BrowserSession> {
    const { browser, targets } = running;
    const context =
      options.ownContext === false ? browser.defaultBrowserContext() : await browser.createBrowserContext();
    const session = new BrowserSession(context, targets, options);
    const { policy, credentials } = options;
    targets.own(context.id, {
      note: (event) => session.#note(event),
      ...(policy ? { refuse: (url: string) => policy.refuse(url) } : {}),
      ...(credentials
        ? { credentials: (url: string) => (new URL(url).origin === credentials.origin ? credentials : null) }
        : {}),
    });
    try {
      await Promise.all([
        targets.denyPermissions(context.id),
        targets.setDownloads(context.id, options.downloads ? resolve(options.downloads) : null),
      ]);
      const page = await context.newPage();
      await session.#adopt(page);
      context.on('targetcreated', (target) => {
        if (target.type() !== 'page') return;
        session.#arriving.push(
          (async () => {
            const opened = await target.page();
            if (opened && !session.#tabs.some((tab) => tab.page === opened)) await session.#adopt(opened);
          })().catch(() => undefined),
        );
      });
    } catch (error) {
      await context.close().catch(() => undefined);
      throw error;
    }
    return session;
  }

  async #adopt(page: Page): Promise<void> {
    const isFirst = this.#tabs.length === 0;
    page.on('close', () => this.#forget(page));
    const tab = await Tab.attach(page, this.#limits, this.#targets, (event) => this.#note(event));
    await tab.setViewport(this.#viewport);
    if (page.isClosed()) return;
    this.#tabs.push(tab);
    this.#active = tab;
    if (!isFirst) this.#note('a new tab was opened');
  }

  // A page that repeats itself must not fill the policy's context.
  #note(event: string): void {
    if (this.#events.length < 20 && this.#events.at(-1) !== event) this.#events.push(event);
  }

  #forget(page: Page): void {
    const index = this.#tabs.findIndex((tab) => tab.page === page);
    if (index < 0) return;
    const [tab] = this.#tabs.splice(index, 1);
    if (tab !== this.#active) return;
    this.#active = this.#tabs.at(-1) ?? null;
    this.#note('the tab was closed');
  }

  /** CSS pixels, and image pixels to one of them. */
  async setViewport(viewport: { width: number; height: number; deviceScaleFactor?: number }): Promise<void> {
    const next = { deviceScaleFactor: 1, ...viewport };
    const now = this.#viewport;
    if (
      next.width === now.width &&
      next.height === now.height &&
      next.deviceScaleFactor === now.deviceScaleFactor
    )
      return;
    this.#viewport = next;
    for (const tab of this.#tabs) await tab.setViewport(next);
  }

  /** The tab in front. @throws BoqError BOQ_BROWSER where none is left. */
  get tab(): Tab {
    const tab = this.#active;
    if (!tab || tab.closed)
      throw new BoqError('BOQ_BROWSER', 'expected an open tab, all of them were closed');
    if (tab.crashed) throw new BoqError('BOQ_BROWSER', 'the page crashed');
    return tab;
  }

  /** True where the page in front has crashed; the next observation loads it again. */
  get crashed(): boolean {
    return this.#active?.crashed ?? false;
  }

  get usable(): boolean {
    return this.#active !== null && !this.#active.closed && !this.#active.crashed;
  }

  /** Loads the start page of an episode: one tab, no history, no events but those of its loading. @throws BoqError BOQ_BROWSER */
  async begin(url: string): Promise<void> {
    const [first, ...others] = this.#tabs;
    for (const tab of others) await tab.page.close().catch(() => undefined);
    if (first) this.#active = first;
    this.startUrl = url;
    this.#crashes = 0;
    this.#events = [];
    const fault = await this.goto(url);
    if (fault) throw new BoqError('BOQ_BROWSER', `expected ${url} to load, got ${fault}`);
    // Where the last episode left the mouse must not show.
    await Promise.all([this.tab.forgetHistory(), this.tab.input.move({ x: 0, y: 0 })]);
    this.#events = this.#events.filter((event) => event !== leavingNote);
    this.#lastPoint = { x: 0, y: 0 };
  }

  async observe(signal?: AbortSignal): Promise<Observation> {
    if (this.#active?.crashed) await this.#revive(this.#active);
    const tab = this.tab;
    try {
      return await this.#observeTab(tab, signal);
    } catch (error) {
      if (tab.crashed && !signal?.aborted) return this.observe(signal);
      // A window may close itself meanwhile: the one beneath it is in front then.
      if (await tab.closesWith(error)) return this.observe(signal);
      throw error;
    }
  }

  /** A page that crashed is loaded again; one that crashes at once is left for the start page. */
  async #revive(tab: Tab): Promise<void> {
    if (this.#crashes++ >= crashesAllowed)
      throw new BoqError('BOQ_BROWSER', 'the page crashed again and again');
    if (await tab.revive(tab.url)) {
      this.#note('the page crashed and was loaded again');
    } else if (await tab.revive(this.startUrl)) {
      this.#note('the page crashed twice, so the start page was loaded');
    }
  }

  async #observeTab(tab: Tab, signal?: AbortSignal): Promise<Observation> {
    const [raw, screenshot] = await within(
      Promise.all([tab.observe(), tab.screenshot(this.#screenshot)]),
      3 * this.#limits.callMs,
      'an observation',
      signal,
    );
    const events = this.#events.splice(0);
    return {
      ...raw,
      elements: describeElements(raw.elements),
      screenshot,
      tabs: await this.#listTabs(tab, raw.title),
      events,
    };
  }

  async #listTabs(active: Tab, title: string): Promise<Observation['tabs']> {
    return Promise.all(
      this.#tabs.map(async (tab) => ({
        url: tab.url,
        title: tab === active ? title : await tab.page.title().catch(() => ''),
        active: tab === active,
      })),
    );
  }

  /** Waits for what an action has led to, in this tab or in one it opened. */
  async settle(): Promise<void> {
    for (let round = 0; round < 3; round++) {
      const before = this.#active;
      if (before && !before.closed) await before.settle();
      await this.#awaitWindows(before);
      if (this.#active === before) return;
    }
  }

  // A window that was announced arrives a moment later, or is blocked.
  async #awaitWindows(opener: Tab | null): Promise<void> {
    if (opener && opener.openedWindows > 0) {
      opener.openedWindows = 0;
      const deadline = Date.now() + 2000;
      while (this.#arriving.length === 0 && Date.now() < deadline && !opener.closed) {
        await opener
          .evaluate('new Promise((resolve) => requestAnimationFrame(resolve))')
          .catch(() => undefined);
      }
    }
    await Promise.all(this.#arriving.splice(0));
  }

  /** All cookies of the window. */
  cookies(): Promise<Cookie[]> {
    return this.#context.cookies();
  }

  async setCookies(cookies: readonly CookieData[]): Promise<void> {
    await this.#context.setCookie(...cookies);
  }

  control(point: Point): Promise<ControlInfo> {
    return this.tab.control(point);
  }

  /** What a click at the point, Enter in the field there, or a key in the focused element would press. */
  consequence(by: 'click' | 'submit' | 'key', point: Point | null): Promise<Consequence> {
    return this.tab.askAt<Consequence>('consequence', point ?? this.#lastPoint, by);
  }

  async click(point: Point): Promise<void> {
    this.#lastPoint = point;
    await this.tab.input.click(point);
  }

  choose(point: Point, option: string): Promise<boolean> {
    this.#lastPoint = point;
    return this.tab.askAt<boolean>('choose', point, option);
  }

  setValue(point: Point, value: string): Promise<string> {
    return this.tab.askAt<string>('setValue', point, value);
  }

  async type(point: Point, text: string, submit: boolean): Promise<{ editable: boolean; words: string }> {
    const tab = this.tab;
    await this.click(point);
    const field = await tab.askAt<{ editable: boolean; multiline: boolean; words: string }>(
      'prepareTyping',
      point,
    );
    if (!field.editable) return field;
    const content = field.multiline ? text : text.replace(/[\r\n]+/g, ' ');
    if (content) await tab.input.type(content);
    else await tab.input.press('Delete');
    if (submit) await tab.input.press('Enter');
    return field;
  }

  scroll(direction: 'up' | 'down' | 'left' | 'right'): Promise<boolean> {
    return this.tab.ask<boolean>('scrollBy', direction, this.#lastPoint.x, this.#lastPoint.y);
  }

  press(key: string): Promise<void> {
    return this.tab.input.press(key as KeyName);
  }

  async hover(point: Point): Promise<void> {
    this.#lastPoint = point;
    await this.tab.input.move(point);
  }

  async drag(from: Point, to: Point): Promise<void> {
    this.#lastPoint = to;
    await this.tab.input.drag(from, to);
  }

  async switchTab(number: number): Promise<boolean> {
    const tab = this.#tabs[number - 1];
    if (!tab) return false;
    this.#active = tab;
    await tab.bringToFront();
    return true;
  }

  async upload(point: Point, file: string): Promise<string | null> {
    if (!this.#uploads) return 'files cannot be given: no upload folder is set';
    const path = resolve(this.#uploads, file);
    if (!path.startsWith(this.#uploads + sep) || !existsSync(path)) {
      return `there is no file ${basename(file)} in the upload folder`;
    }
    return (await this.tab.input.giveFile(point, path)) ? null : 'the file field did not take the file';
  }

  async goBack(): Promise<boolean> {
    if (await this.tab.goBack()) return true;
    if (this.#tabs.length < 2) return false;
    await this.tab.page.close();
    return true;
  }

  reload(): Promise<void> {
    return this.tab.reload();
  }

  async goto(url: string): Promise<string | null> {
    const reason = (await this.#policy?.refuse(url)) ?? null;
    if (reason !== null) return `${reason}`;
    return this.tab.goto(url);
  }

  async pause(): Promise<void> {
    await this.tab.ask('pause', 1000);
  }

  async close(): Promise<void> {
    this.#targets.release(this.#context.id);
    if (!this.#ownContext) {
      for (const tab of this.#tabs) await tab.page.close().catch(() => undefined);
      return;
    }
    await within(this.#context.close(), 5000, 'the window to close').catch(() => undefined);
  }
}
