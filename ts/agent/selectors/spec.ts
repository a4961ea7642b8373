/** Specifications such as `best-of-q@margin=0.05`: a name, and settings that are numbers within bounds. */
import { BoqError } from '../../core/errors.js';
import { nearestNames } from '../../core/nearest.js';
import type { VlmSetup } from '../vlm/index.js';

/** One number that a rule can be set to. */
export interface Setting {
  default: number;
  min: number;
  max: number;
  isInteger?: boolean;
}

/** What a name stands for. */
export interface Entry<T> {
  readonly settings: Readonly<Record<string, Setting>>;
  /** @param vlm where the model is, for a rule that asks one */
  create(settings: Readonly<Record<string, number>>, vlm: VlmSetup): T;
}

export type Entries<T> = Readonly<Record<string, Entry<T>>>;

/** A specification taken apart; values are as written, so that one may be a word such as `auto`. */
export interface SelectorSpec {
  rule: string;
  settings: Record<string, string>;
}

/**
 * @param kind what the entries are, for messages
 * @throws BOQ_USAGE where the form is wrong or the name or a setting is unknown
 */
export function parseSpec<T>(kind: string, entries: Entries<T>, text: string): SelectorSpec {
  const [rule = '', ...rest] = text.trim().split('@');
  const known = entries[rule];
  if (!known || !Object.hasOwn(entries, rule)) {
    const [nearest] = nearestNames(rule, Object.keys(entries));
    throw new BoqError('BOQ_USAGE', `Unknown ${kind} "${rule}": did you mean ${nearest}?`);
  }
  const settings: Record<string, string> = {};
  for (const part of rest.join('@').split('&').filter(Boolean)) {
    const [name = '', value] = part.split('=', 2);
    if (value === undefined || !Object.hasOwn(known.settings, name)) {
      const names = Object.keys(known.settings).map((setting) => `${rule}@${setting}=VALUE`);
      const allowed = names.length === 0 ? `${rule} takes none` : `expected ${names.join(', ')}`;
      throw new BoqError('BOQ_USAGE', `Unknown setting "${part}" of ${kind} ${rule}: ${allowed}.`);
    }
    settings[name] = value;
  }
  return { rule, settings };
}

/** Settings left out have their defaults. @throws BOQ_USAGE */
export function createFrom<T>(entries: Entries<T>, { rule, settings }: SelectorSpec, vlm: VlmSetup = {}): T {
  const known = entries[rule]!;
  const values = Object.entries(known.settings).map(([name, setting]): [string, number] => {
    const written = settings[name];
    if (written === undefined) return [name, setting.default];
    const value = written.trim() === '' ? Number.NaN : Number(written);
    const { min, max, isInteger = false } = setting;
    if (!(value >= min && value <= max) || (isInteger && !Number.isInteger(value))) {
      const upper = max === Number.MAX_VALUE ? 'or more' : `to ${max}`;
      const what = isInteger ? 'a whole number' : 'a number';
      throw new BoqError(
        'BOQ_USAGE',
        `Expected ${rule}@${name} to be ${what}, ${min} ${upper}, got "${written}".`,
      );
    }
    return [name, value];
  });
  return known.create(Object.fromEntries(values), vlm);
}
