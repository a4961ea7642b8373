/** Notices an agent that goes round in circles: the same action in the same state of the page, again and again. */
import { createHash } from 'node:crypto';
import type { Action } from '../store/types.js';
import type { Observation } from './types.js';

/** When repetition counts as a circle. */
export interface LoopGuardOptions {
  /** Times that one action may be taken in one state before the episode ends; default 4. */
  stopAfter?: number;
}

/** Notices when an episode goes round in circles. */
export class LoopGuard {
  readonly #stopAfter: number;
  readonly #taken = new Map<string, number>();
  #state = '';
  #last: { action: Action; state: string; times: number } | null = null;

  constructor({ stopAfter = 4 }: LoopGuardOptions = {}) {
    this.#stopAfter = stopAfter;
  }

  /**
   * Looks at the page after an action. That an action changed nothing is the environment's to tell; this is about
   * the second time and later ones, in a row or in circles.
   * @returns what the policy should hear about it, a sentence each
   */
  observe(observation: Observation): string[] {
    this.#state = stateOf(observation);
    if (this.#last?.state !== this.#state || this.#last.times < 2) return [];
    return [`the last action was tried ${this.#last.times} times in this state: something else is needed`];
  }

  /** Notes an action that is about to be taken in the state last seen. */
  take(action: Action): void {
    const key = `${this.#state} ${JSON.stringify(action)}`;
    const times = (this.#taken.get(key) ?? 0) + 1;
    this.#taken.set(key, times);
    this.#last = { action, state: this.#state, times };
  }

  /** True once an action was taken in one state as often as allowed, and the page is in that state again. */
  get isStuck(): boolean {
    return this.#last !== null && this.#last.times >= this.#stopAfter && this.#last.state === this.#state;
  }
}

/** Everything that an action could have changed: address, scrolling, elements with their values, and the picture. */
function stateOf({ url, title, scroll, elements, screenshot }: Observation): string {
  const parts = elements.map(({ role, name, value, checked, selected, expanded, disabled, box }) => [
    ...[role, name, value, checked, selected, expanded, disabled],
    ...[box.x, box.y, box.width, box.height],
  ]);
  return createHash('sha256')
    .update(JSON.stringify([url, title, scroll.x, scroll.y, parts]))
    .update(screenshot.bytes)
    .digest('base64');
}
