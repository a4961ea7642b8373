/** An episode's world: the session that is looked at and acted on, and whoever judges when it is over. */
import { BoqError } from '../../core/errors.js';
import type { Action, ActionResult, Point } from '../../store/types.js';
import type { ActionRegistry } from '../actions/registry.js';
import type { Consequence, Environment, Observation, Verdict } from '../types.js';
import { Progress } from './progress.js';
import { Secrets } from './secrets.js';
import type { BrowserSession } from './session.js';

export interface EnvironmentOptions {
  /** Values that are typed by name and masked wherever the page shows them. */
  secrets?: Secrets;
}

/** An Environment on a browser session. */
export class PageEnvironment implements Environment {
  readonly #session: BrowserSession;
  readonly #actions: ActionRegistry;
  readonly #judge: () => Promise<Verdict | null>;
  readonly #secrets: Secrets;
  readonly #progress = new Progress();

  /** @param judge asked after every action; null while the episode goes on. */
  constructor(
    session: BrowserSession,
    actions: ActionRegistry,
    judge: () => Promise<Verdict | null> = async () => null,
    options: EnvironmentOptions = {},
  ) {
    this.#session = session;
    this.#actions = actions;
    this.#judge = judge;
    this.#secrets = options.secrets ?? new Secrets();
  }

  async observe(signal?: AbortSignal): Promise<Observation> {
    const observation = await this.#session.observe(signal);
    observation.events.push(...this.#progress.observed(observation));
    return this.#secrets.names.length === 0 ? observation : this.#masked(observation);
  }

  // The picture is not masked: password fields hide their text themselves, other fields show it.
  #masked(observation: Observation): Observation {
    const mask = (text: string): string => this.#secrets.mask(text);
    return {
      ...observation,
      url: mask(observation.url),
      title: mask(observation.title),
      events: observation.events.map(mask),
      tabs: observation.tabs.map((tab) => ({ ...tab, url: mask(tab.url), title: mask(tab.title) })),
      elements: observation.elements.map((element) => ({
        ...element,
        name: mask(element.name),
        value: mask(element.value),
        context: mask(element.context),
        description: mask(element.description),
        options: element.options.map(mask),
      })),
    };
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
    const refused = this.#progress.acting(action);
    if (refused !== null) return { ok: false, message: refused };
    const filled = await this.#fill(action);
    if ('refused' in filled) return { ok: false, message: filled.refused };
    try {
      const result = await definition.execute(this.#session, filled.action, point);
      await this.#session.settle();
      return { ...result, message: this.#secrets.mask(result.message) };
    } catch (error) {
      // The next observation loads the page again.
      if (this.#session.crashed) return { ok: false, message: 'the page crashed while this was done' };
      throw error;
    }
  }

  async consequence(action: Action, point: Point | null): Promise<Consequence | null> {
    const by = this.#actions.get(action.type)?.presses?.(action) ?? null;
    if (by === null) return null;
    const { words, isField } = await this.#session.consequence(by, point);
    return { words: this.#secrets.mask(words), isField };
  }

  async #fill(action: Action): Promise<{ action: Action } | { refused: string }> {
    if (this.#secrets.names.length === 0 || typeof action.text !== 'string') return { action };
    const filled = await this.#secrets.fill(action.text, this.#session.tab.url);
    return 'refused' in filled ? filled : { action: { ...action, text: filled.text } };
  }

  verdict(): Promise<Verdict | null> {
    return this.#judge();
  }
}
