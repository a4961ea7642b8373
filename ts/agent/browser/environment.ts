/** An episode's world: the session that is looked at and acted on, and whoever judges when it is over. */
import { BoqError } from '../../core/errors.js';
import type { Action, ActionResult, Point } from '../../store/types.js';
import type { ActionRegistry } from '../actions/registry.js';
import type { Environment, Observation, Verdict } from '../types.js';
import type { BrowserSession } from './session.js';

/** An Environment on a browser session. */
export class PageEnvironment implements Environment {
  readonly #session: BrowserSession;
  readonly #actions: ActionRegistry;
  readonly #judge: () => Promise<Verdict | null>;

  /** @param judge asked after every action; null while the episode goes on. */
  constructor(
    session: BrowserSession,
    actions: ActionRegistry,
    judge: () => Promise<Verdict | null> = async () => null,
  ) {
    this.#session = session;
    this.#actions = actions;
    this.#judge = judge;
  }

  observe(signal?: AbortSignal): Promise<Observation> {
    return this.#session.observe(signal);
  }

  async act(action: Action, point: Point | null, signal?: AbortSignal): Promise<ActionResult> {
    signal?.throwIfAborted();
    const definition = this.#actions.get(action.type);
    if (!definition) {
      throw new BoqError(
        'BOQ_INVALID_ARGUMENT',
        `expected one of ${this.#actions.types.join(', ')}, got "${action.type}"`,
      );
    }
    const result = await definition.execute(this.#session, action, point);
    await this.#session.settle();
    return result;
  }

  verdict(): Promise<Verdict | null> {
    return this.#judge();
  }
}
