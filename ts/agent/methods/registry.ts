/**
 * Methods by specification: a selector, and rules behind plus signs, e.g. `best-of-q@margin=0.05+no-placeholders` or
 * `best-of-q+union@calls=2+ask-again@drop=0.05`. The first rule is the innermost.
 */
import { BoqError } from '../../core/errors.js';
import { createSelector, parseSelectorSpec } from '../selectors/registry.js';
import { createFrom, type Entries, parseSpec, type SelectorSpec } from '../selectors/spec.js';
import type { VlmSetup } from '../vlm/index.js';
import { type Method, methodOf, type Rule } from './method.js';
import { askAgain } from './rules/ask-again.js';
import { backtrack } from './rules/backtrack.js';
import { calibrated } from './rules/calibrated.js';
import { noPlaceholders } from './rules/no-placeholders.js';
import { pageDerived } from './rules/page-derived.js';
import { retry } from './rules/retry.js';
import { samples } from './rules/samples.js';
import { search } from './rules/search.js';
import { trajectories } from './rules/trajectories.js';
import { union } from './rules/union.js';

const count = (usual: number, min: number) => ({ default: usual, min, max: 1000, isInteger: true });
const value = (usual: number) => ({ default: usual, min: 0, max: Number.MAX_VALUE });

const rules: Entries<Rule> = {
  'no-placeholders': { settings: {}, create: noPlaceholders },
  union: { settings: { calls: count(2, 2) }, create: ({ calls }) => union(calls!) },
  samples: { settings: { k: count(5, 1) }, create: ({ k }) => samples(k!) },
  'page-derived': { settings: { k: count(3, 1) }, create: ({ k }) => pageDerived(k!) },
  'ask-again': {
    settings: { drop: value(0.05), more: count(3, 1) },
    create: ({ drop, more }) => askAgain(drop!, more!),
  },
  backtrack: { settings: { drop: value(0.2) }, create: ({ drop }) => backtrack(drop!) },
  calibrated: { settings: {}, create: calibrated },
  trajectories: { settings: { k: count(3, 2) }, create: ({ k }) => trajectories(k!) },
  retry: {
    settings: { times: count(2, 1), below: value(0.3) },
    create: ({ times, below }) => retry(times!, below!),
  },
  search: {
    settings: { depth: count(2, 1), width: count(3, 1), budget: count(9, 1) },
    create: ({ depth, width, budget }) => search({ depth: depth!, width: width!, budget: budget! }),
  },
};

/** Rules that createMethod knows. */
export const ruleNames: readonly string[] = Object.keys(rules);

/** A method taken apart; values are as written. */
export interface MethodSpec {
  selector: SelectorSpec;
  rules: SelectorSpec[];
}

/** @throws BOQ_USAGE */
export function parseMethodSpec(text: string): MethodSpec {
  const [selector = '', ...others] = text.split('+');
  const spec = {
    selector: parseSelectorSpec(selector),
    rules: others.map((part) => parseSpec('rule', rules, part)),
  };
  const names = spec.rules.map(({ rule }) => rule);
  const twice = names.find((name, index) => names.indexOf(name) !== index);
  if (twice !== undefined)
    throw new BoqError('BOQ_USAGE', `Expected each rule once in "${text}", got ${twice} twice.`);
  return spec;
}

/**
 * The method that a specification names; settings left out have their defaults.
 * @param vlm where the model is, for a selector that asks one; the environment says so where left out
 * @throws BOQ_USAGE, BOQ_VLM_ENDPOINT, BOQ_VLM_KEY
 */
export function createMethod(spec: string | MethodSpec, vlm: VlmSetup = {}): Method {
  const parsed = typeof spec === 'string' ? parseMethodSpec(spec) : spec;
  return methodOf(
    createSelector(parsed.selector, vlm),
    parsed.rules.map((rule) => createFrom(rules, rule)),
  );
}

/** True where the margin is left to be chosen on validation seeds. */
export function isMarginOpen({ selector }: MethodSpec): boolean {
  return selector.settings['margin'] === 'auto';
}

/** The method with this margin in place of the open one. @throws BOQ_USAGE */
export function methodWithMargin(spec: MethodSpec, margin: number): Method {
  const { rule, settings } = spec.selector;
  return createMethod({ ...spec, selector: { rule, settings: { ...settings, margin: String(margin) } } });
}
