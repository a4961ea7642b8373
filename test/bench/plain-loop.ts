/**
 * What most people write first: a loop on Puppeteer as it comes. Elements are found by their accessible name, clicked
 * with page.click and filled with page.type; a moment of quiet on the network is waited for, then a picture taken.
 */
import puppeteer, { type Browser, type Page } from 'puppeteer';
import { findBrowser, needsNoSandbox } from '../../ts/agent/browser/launch.js';
import type { Action } from '../../ts/store/types.js';
import type { Hands } from '../support/traps.js';

/** Roles that the accessibility tree calls as the descriptions do. */
const roles =
  'button|link|checkbox|radio|textbox|searchbox|combobox|listbox|option|slider|spinbutton|heading';

export class PlainLoop implements Hands {
  readonly #browser: Browser;
  readonly #page: Page;

  private constructor(browser: Browser, page: Page) {
    this.#browser = browser;
    this.#page = page;
  }

  static async start(): Promise<PlainLoop> {
    const browser = await puppeteer.launch({
      executablePath: findBrowser() ?? '',
      args: needsNoSandbox() ? ['--no-sandbox'] : [],
      defaultViewport: { width: 800, height: 700 },
    });
    const [page] = await browser.pages();
    return new PlainLoop(browser, page!);
  }

  async open(url: string): Promise<void> {
    await this.#page.goto(url);
  }

  title(): Promise<string> {
    return this.#page.title();
  }

  async observe(): Promise<{ elements: { description: string }[] }> {
    await this.#page.screenshot();
    const tree = await this.#page.accessibility.snapshot({ includeIframes: true });
    const elements: { description: string }[] = [];
    const visit = (node: NonNullable<typeof tree>): void => {
      elements.push({ description: `${node.role} "${node.name}"` });
      for (const child of node.children ?? []) visit(child);
    };
    if (tree) visit(tree);
    return { elements };
  }

  click(element: string): Promise<void> {
    return this.act({ type: 'click', element });
  }

  write(element: string, text: string, submit = false): Promise<void> {
    return this.act({ type: 'write', element, text, submit });
  }

  async act(action: Action): Promise<void> {
    await this.#carryOut(action);
    await this.#page.waitForNetworkIdle({ idleTime: 500, timeout: 5000 }).catch(() => undefined);
    await this.#page.screenshot();
  }

  async #carryOut(action: Action): Promise<void> {
    const page = this.#page;
    const selector = typeof action['element'] === 'string' ? selectorOf(action['element']) : '';
    switch (action.type) {
      case 'click':
        return page.click(selector);
      case 'write':
        // Three clicks select what the field holds, and typing replaces it.
        await page.click(selector, { count: 3 });
        await page.type(selector, String(action['text']));
        if (action['submit'] === true) await page.keyboard.press('Enter');
        return;
      case 'hover':
        return page.hover(selector);
      case 'press':
        return page.keyboard.press(action['key'] as 'Enter');
      case 'scroll': {
        const { width, height } = page.viewport() ?? { width: 800, height: 600 };
        await page.mouse.move(width / 2, height / 2);
        const far = { up: [0, -1], down: [0, 1], left: [-1, 0], right: [1, 0] }[
          action['direction'] as 'up' | 'down' | 'left' | 'right'
        ] as [number, number];
        return page.mouse.wheel({ deltaX: 0.8 * width * far[0], deltaY: 0.8 * height * far[1] });
      }
      case 'drag': {
        const box = await (await page.waitForSelector(selector))!.boundingBox();
        if (!box) throw new Error('the element has no place');
        const [x, y] = [box.x + box.width / 2, box.y + box.height / 2];
        await page.mouse.move(x, y);
        await page.mouse.down();
        await page.mouse.move(x + Number(action['right']), y + Number(action['down']), { steps: 8 });
        return page.mouse.up();
      }
      case 'go_back':
        await page.goBack();
        return;
      case 'goto':
        await page.goto(String(action['url']));
        return;
      case 'restart':
      case 'refresh':
        await page.reload();
        return;
      case 'switch_tab':
        // It knows the page it began with, and no other.
        return;
      case 'wait':
        await new Promise((resolve) => setTimeout(resolve, 1000));
        return;
      default:
        throw new Error(`no way to ${action.type}`);
    }
  }

  /** Ends the browser, whatever state it is in. */
  async close(): Promise<void> {
    const child = this.#browser.process();
    const gone =
      child && child.exitCode === null ? new Promise((resolve) => child.once('exit', resolve)) : null;
    child?.kill('SIGKILL');
    await gone;
    await this.#browser.disconnect();
  }
}

/** `button "OK"` as Puppeteer's selector by accessible role and name; words without a role as their text. */
function selectorOf(description: string): string {
  const [, role, name] = new RegExp(`^(?:(${roles})|\\w+)? ?"([^"]*)"`).exec(description) ?? [];
  if (name === undefined) return `::-p-text(${description})`;
  if (description.startsWith('"')) return `::-p-text(${name})`;
  return role ? `::-p-aria([name="${name}"][role="${role}"])` : `::-p-aria([name="${name}"])`;
}
