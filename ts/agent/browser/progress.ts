/** Notices that nothing happens: actions without effect, the same action again and again. */
import { createHash } from 'node:crypto';
import type { Action } from '../../store/types.js';
import type { Observation } from '../types.js';

/** Repetitions of one action on one unchanged page after which it is not carried out any more. */
export const repetitionLimit = 4;

// Waiting, answering and the like are not expected to change the page.
const quietActions = new Set(['wait', 'answer', 'hover']);

/** What a person would compare: address, place, elements with their states. Pictures are left out, they flicker. */
export function fingerprint(observation: Pick<Observation, 'url' | 'scroll' | 'elements' | 'tabs'>): string {
  const { url, scroll, elements, tabs } = observation;
  const parts = elements.map(({ role, name, value, checked, selected, expanded, disabled, focused, box }) =>
    JSON.stringify([
      role,
      name,
      value,
      checked,
      selected,
      expanded,
      disabled,
      focused,
      Math.round(box.x),
      Math.round(box.y),
    ]),
  );
  return createHash('sha256')
    .update(JSON.stringify([url, scroll, tabs.length, parts]))
    .digest('hex');
}

export class Progress {
  #last: { action: string; quiet: boolean } | null = null;
  #before: string | null = null;
  /** How often in a row the last action has been seen to change nothing. */
  #futile = 0;
  #told = false;

  /** Call with each observation; returns what the policy should know. */
  observed(observation: Observation): string[] {
    const now = fingerprint(observation);
    const unchanged = now === this.#before;
    this.#before = now;
    if (!this.#last || this.#told) return [];
    this.#told = true;
    if (!unchanged) {
      this.#futile = 0;
      return [];
    }
    if (this.#last.quiet) return [];
    this.#futile++;
    return [
      this.#futile > 1
        ? `the last action has been done ${this.#futile} times and changed nothing`
        : 'the last action changed nothing that can be seen',
    ];
  }

  /** Call before an action is carried out; why it should not be, or null. */
  acting(action: Action): string | null {
    const text = JSON.stringify(action);
    if (this.#last?.action !== text) this.#futile = 0;
    this.#last = { action: text, quiet: quietActions.has(action.type) };
    this.#told = false;
    if (this.#futile < repetitionLimit) return null;
    return `not done again: it was done ${repetitionLimit} times and changed nothing; do something else`;
  }
}
