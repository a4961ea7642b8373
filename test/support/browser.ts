/** A browser for integration tests: one pool a suite, sessions on the project's own pages. */
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { ActionRegistry, optionalActions, standardActions } from '../../ts/agent/actions/registry.js';
import { PageEnvironment } from '../../ts/agent/browser/environment.js';
import { BrowserPool, type PoolOptions } from '../../ts/agent/browser/pool.js';
import type { BrowserSession } from '../../ts/agent/browser/session.js';
import { PageLocalizer } from '../../ts/agent/localizer/page.js';
import type { Observation } from '../../ts/agent/types.js';
import type { Action, ActionResult } from '../../ts/store/types.js';

const fixtures = fileURLToPath(new URL('../fixtures', import.meta.url));

export const fixtureUrl = (path: string): string => pathToFileURL(join(fixtures, path)).href;

const everyAction = new ActionRegistry([...standardActions, ...optionalActions]);

/** An agent's hands: acts by element descriptions, as the loop does. */
export class Hands {
  readonly session: BrowserSession;
  readonly environment: PageEnvironment;
  readonly #registry: ActionRegistry;

  constructor(session: BrowserSession, registry = everyAction) {
    this.session = session;
    this.environment = new PageEnvironment(session, registry);
    this.#registry = registry;
  }

  observe(): Promise<Observation> {
    return this.environment.observe();
  }

  async act(action: Action): Promise<ActionResult> {
    if (!this.#registry.get(action.type)?.needsPoint) return this.environment.act(action, null);
    const found = await new PageLocalizer().locate(String(action.element), await this.observe());
    if (!found.found) return { ok: false, message: found.message };
    return this.environment.act(action, found.point);
  }

  click(element: string): Promise<ActionResult> {
    return this.act({ type: 'click', element });
  }

  write(element: string, text: string, submit = false): Promise<ActionResult> {
    return this.act({ type: 'write', element, text, submit });
  }

  evaluate<T>(expression: string): Promise<T> {
    return this.session.tab.evaluate<T>(expression);
  }

  title(): Promise<string> {
    return this.evaluate('document.title');
  }
}

export function withPages(
  options: Partial<PoolOptions> = {},
): (path: string, work: (hands: Hands) => Promise<void>) => Promise<void> {
  const pool = new BrowserPool({ size: 4, viewport: { width: 800, height: 700 }, ...options });
  after(() => pool.close());
  return (path, work) =>
    pool.use(async (session) => {
      await session.begin(path.includes(':') ? path : fixtureUrl(path));
      await work(new Hands(session));
    }, true);
}
