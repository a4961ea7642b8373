/** Selectors by name, with settings: `random`, `epsilon-greedy@epsilon=0.5`, `best-of-q@margin=0.05`. */
import { BoqError } from '../../core/errors.js';
import { nearestNames } from '../../core/nearest.js';
import type { Selector } from '../types.js';
import { bestOfQ } from './best-of-q.js';
import { epsilonGreedy } from './epsilon-greedy.js';
import { first } from './first.js';
import { pickerSelector, wordPicker } from './picker.js';
import { prompting } from './prompting.js';
import { random } from './random.js';

interface Setting {
  default: number;
  min: number;
  max: number;
}

interface SelectorRule {
  readonly settings: Readonly<Record<string, Setting>>;
  create(settings: Readonly<Record<string, number>>): Selector;
}

const rules: Readonly<Record<string, SelectorRule>> = {
  prompting: { settings: {}, create: prompting },
  first: { settings: {}, create: first },
  random: { settings: {}, create: random },
  'epsilon-greedy': {
    settings: { epsilon: { default: 0.5, min: 0, max: 1 } },
    create: ({ epsilon }) => epsilonGreedy(epsilon!),
  },
  picker: { settings: {}, create: () => pickerSelector(wordPicker) },
  'best-of-q': {
    settings: { margin: { default: 0, min: 0, max: Number.MAX_VALUE } },
    create: ({ margin }) => bestOfQ(margin!),
  },
};

/** Names that createSelector knows. */
export const selectorNames: readonly string[] = Object.keys(rules);

/** A specification taken apart; values are as written, so that one may be a word such as `auto`. */
export interface SelectorSpec {
  rule: string;
  settings: Record<string, string>;
}

/** @throws BOQ_USAGE where the form is wrong or the rule or a setting is unknown */
export function parseSelectorSpec(text: string): SelectorSpec {
  const [rule = '', ...rest] = text.split('@');
  const known = rules[rule];
  if (!known || !Object.hasOwn(rules, rule)) {
    const [nearest] = nearestNames(rule, selectorNames);
    throw new BoqError('BOQ_USAGE', `Unknown selector "${rule}": did you mean ${nearest}?`);
  }
  const settings: Record<string, string> = {};
  for (const part of rest.join('@').split('&').filter(Boolean)) {
    const [name = '', value] = part.split('=', 2);
    if (value === undefined || !Object.hasOwn(known.settings, name)) {
      const names = Object.keys(known.settings).map((setting) => `${rule}@${setting}=VALUE`);
      const allowed = names.length === 0 ? `${rule} takes none` : `expected ${names.join(', ')}`;
      throw new BoqError('BOQ_USAGE', `Unknown setting "${part}" of selector ${rule}: ${allowed}.`);
    }
    settings[name] = value;
  }
  return { rule, settings };
}

/**
 * The selector that a specification names; settings left out have their defaults.
 * @throws BOQ_USAGE
 */
export function createSelector(spec: string | SelectorSpec): Selector {
  const { rule, settings } = typeof spec === 'string' ? parseSelectorSpec(spec) : spec;
  const known = rules[rule]!;
  const values = Object.entries(known.settings).map(([name, setting]): [string, number] => {
    const written = settings[name];
    if (written === undefined) return [name, setting.default];
    const value = written.trim() === '' ? Number.NaN : Number(written);
    if (!(value >= setting.min && value <= setting.max)) {
      const upper = setting.max === Number.MAX_VALUE ? 'or more' : `to ${setting.max}`;
      throw new BoqError(
        'BOQ_USAGE',
        `Expected ${rule}@${name} to be a number, ${setting.min} ${upper}, got "${written}".`,
      );
    }
    return [name, value];
  });
  return known.create(Object.fromEntries(values));
}
