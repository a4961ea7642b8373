/**
 * One agent's browser window: its tabs, dialogs and downloads, what it sees and what it can do. Sessions of one
 * browser share nothing: each has its own context with its own cookies.
 */
import type { Browser, BrowserContext, Dialog, Page } from 'puppeteer';
import { BoqError } from '../../core/errors.js';
import type { Point } from '../../store/types.js';
import type { ActionSurface, ControlInfo } from '../actions/types.js';
import { describeElements } from '../elements.js';
import type { Observation } from '../types.js';
import { within } from './deadline.js';
import { type ScreenshotSettings, Tab, type TabLimits } from './tab.js';

export interface SessionOptions {
  viewport?: { width: number; height: number; deviceScaleFactor?: number };
  screenshot?: ScreenshotSettings;
  limits?: Partial<TabLimits>;
}

const defaultLimits: TabLimits = { loadMs: 15_000, settleMs: 3_000, callMs: 20_000 };

/** One window of its own: its tabs, its cookies, and what actions may do to it. */
export class BrowserSession implements ActionSurface {
  readonly #context: BrowserContext;
  readonly #screenshot: ScreenshotSettings;
  readonly #limits: TabLimits;
  #viewport: { width: number; height: number; deviceScaleFactor: number };
  #tabs: Tab[] = [];
  #active: Tab | null = null;
  #arriving: Promise<void>[] = [];
  #events: string[] = [];
  #lastPoint: Point = { x: 0, y: 0 };
  startUrl = 'about:blank';

  private constructor(context: BrowserContext, options: SessionOptions) {
    this.#context = context;
    const { width = 1280, height = 720, deviceScaleFactor = 1 } = options.viewport ?? {};
    this.#viewport = { width, height, deviceScaleFactor };
    this.#screenshot = options.screenshot ?? { format: 'webp', quality: 80 };
    this.#limits = { ...defaultLimits, ...options.limits };
  }

  static async open(browser: Browser, options: SessionOptions = {}): Promise<BrowserSession> {
    const context = await browser.createBrowserContext({ downloadBehavior: { policy: 'deny' } });
    const session = new BrowserSession(context, options);
    try {
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
    page.on('dialog', (dialog) => void this.#answer(dialog));
    const isFirst = this.#tabs.length === 0;
    page.on('close', () => this.#forget(page));
    const tab = await Tab.attach(page, this.#limits);
    await this.#applyViewport(tab);
    if (page.isClosed()) return;
    this.#tabs.push(tab);
    this.#active = tab;
    if (!isFirst) this.#events.push('a new tab was opened');
  }

  #forget(page: Page): void {
    const index = this.#tabs.findIndex((tab) => tab.page === page);
    if (index < 0) return;
    const [tab] = this.#tabs.splice(index, 1);
    if (tab !== this.#active) return;
    this.#active = this.#tabs.at(-1) ?? null;
    this.#events.push('the tab was closed');
  }

  async #answer(dialog: Dialog): Promise<void> {
    const kind = dialog.type();
    const message = dialog.message().slice(0, 300);
    // Alerts, questions and "leave this page?" are agreed to: the agent decided on the action that raised them.
    this.#events.push(
      kind === 'beforeunload'
        ? 'the page asked whether to leave it and was answered yes'
        : `the page showed ${kind === 'alert' ? 'an alert' : `a ${kind}`} "${message}", answered ${kind === 'prompt' ? 'with its default' : 'OK'}`,
    );
    await dialog.accept(kind === 'prompt' ? dialog.defaultValue() : undefined).catch(() => undefined);
  }

  async #applyViewport(tab: Tab): Promise<void> {
    const { width, height, deviceScaleFactor } = this.#viewport;
    await tab.send('Emulation.setDeviceMetricsOverride', { width, height, deviceScaleFactor, mobile: false });
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
    for (const tab of this.#tabs) await this.#applyViewport(tab);
  }

  /** The tab in front. @throws BoqError BOQ_BROWSER where none is left. */
  get tab(): Tab {
    const tab = this.#active;
    if (!tab || tab.closed)
      throw new BoqError('BOQ_BROWSER', 'expected an open tab, all of them were closed');
    if (tab.crashed) throw new BoqError('BOQ_BROWSER', 'the page crashed');
    return tab;
  }

  get usable(): boolean {
    return this.#active !== null && !this.#active.closed && !this.#active.crashed;
  }

  /** Loads the start page of an episode: one tab, no history, no events. @throws BoqError BOQ_BROWSER */
  async begin(url: string): Promise<void> {
    const [first, ...others] = this.#tabs;
    for (const tab of others) await tab.page.close().catch(() => undefined);
    if (first) this.#active = first;
    this.startUrl = url;
    const fault = await this.tab.goto(url);
    if (fault) throw new BoqError('BOQ_BROWSER', `expected ${url} to load, got ${fault}`);
    // Where the last episode left the mouse must not show.
    await Promise.all([this.tab.forgetHistory(), this.tab.mouse('mouseMoved', { x: 0, y: 0 })]);
    this.#events = [];
    this.#lastPoint = { x: 0, y: 0 };
  }

  async observe(signal?: AbortSignal): Promise<Observation> {
    const tab = this.tab;
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

  control(point: Point): Promise<ControlInfo> {
    return this.tab.control(point);
  }

  async click(point: Point): Promise<void> {
    this.#lastPoint = point;
    await this.tab.click(point);
  }

  choose(point: Point, option: string): Promise<boolean> {
    this.#lastPoint = point;
    return this.tab.ask<boolean>('choose', point.x, point.y, option);
  }

  setValue(point: Point, value: string): Promise<string> {
    return this.tab.ask<string>('setValue', point.x, point.y, value);
  }

  async type(point: Point, text: string, submit: boolean): Promise<{ editable: boolean; words: string }> {
    const tab = this.tab;
    await this.click(point);
    const field = await tab.ask<{ editable: boolean; multiline: boolean; words: string }>(
      'prepareTyping',
      point.x,
      point.y,
    );
    if (!field.editable) return field;
    const content = field.multiline ? text : text.replace(/[\r\n]+/g, ' ');
    if (content) await tab.type(content);
    else await tab.press('Delete');
    if (submit) await tab.press('Enter');
    return field;
  }

  scroll(direction: 'up' | 'down' | 'left' | 'right'): Promise<boolean> {
    return this.tab.ask<boolean>('scrollBy', direction, this.#lastPoint.x, this.#lastPoint.y);
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

  goto(url: string): Promise<string | null> {
    return this.tab.goto(url);
  }

  async pause(): Promise<void> {
    await this.tab.ask('pause', 1000);
  }

  async close(): Promise<void> {
    await within(this.#context.close(), 5000, 'the window to close').catch(() => undefined);
  }
}
