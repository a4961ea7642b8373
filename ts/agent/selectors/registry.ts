/** Selectors by name, with settings: `random`, `epsilon-greedy@epsilon=0.5`, `best-of-q@margin=0.05`. */
import type { Selector } from '../types.js';
import { openClient, type VlmSetup } from '../vlm/index.js';
import { bestOfQ } from './best-of-q.js';
import { epsilonGreedy } from './epsilon-greedy.js';
import { first } from './first.js';
import { lowerBound } from './lower-bound.js';
import { majority } from './majority.js';
import { pickerSelector, wordPicker } from './picker.js';
import { prompting } from './prompting.js';
import { random } from './random.js';
import { createFrom, type Entries, parseSpec, type SelectorSpec } from './spec.js';
import { vlmPicker } from './vlm-picker.js';

export type { SelectorSpec } from './spec.js';

const margin = { default: 0, min: 0, max: Number.MAX_VALUE };

const rules: Entries<Selector> = {
  prompting: { settings: {}, create: prompting },
  first: { settings: {}, create: first },
  random: { settings: {}, create: random },
  majority: { settings: {}, create: majority },
  'epsilon-greedy': {
    settings: { epsilon: { default: 0.5, min: 0, max: 1 } },
    create: ({ epsilon }) => epsilonGreedy(epsilon!),
  },
  picker: { settings: {}, create: () => pickerSelector(wordPicker) },
  'vlm-picker': {
    settings: {},
    create: (_, vlm) => pickerSelector(vlmPicker(openClient('picker', vlm))),
  },
  'best-of-q': {
    settings: { margin, rescue: { default: 0, min: 0, max: 1 } },
    create: (settings) => bestOfQ(settings['margin']!, settings['rescue']!),
  },
  'lower-bound': {
    settings: { k: { default: 1, min: 0, max: Number.MAX_VALUE }, margin },
    create: (settings) => lowerBound(settings['k']!, settings['margin']!),
  },
};

/** What `recommended` stands for: the rule that the confirmation supports (docs/benchmarks/selection.md). */
export const recommendedSelector = 'best-of-q@margin=auto';

/** Names that createSelector knows. */
export const selectorNames: readonly string[] = Object.keys(rules);

/**
 * Takes a specification apart; `recommended` is {@link recommendedSelector}.
 * @throws BOQ_USAGE where the form is wrong or the rule or a setting is unknown
 */
export function parseSelectorSpec(text: string): SelectorSpec {
  return parseSpec('selector', rules, text.trim() === 'recommended' ? recommendedSelector : text);
}

/**
 * The selector that a specification names; settings left out have their defaults.
 * @param vlm where the model is, for a rule that asks one; the environment says so where left out
 * @throws BOQ_USAGE, BOQ_VLM_ENDPOINT, BOQ_VLM_KEY
 */
export function createSelector(spec: string | SelectorSpec, vlm: VlmSetup = {}): Selector {
  return createFrom(rules, typeof spec === 'string' ? parseSelectorSpec(spec) : spec, vlm);
}
