/** Other weights for the page policy's facts: a policy of its own, under another name. */
import type { Option } from './options.js';

/** Weights by fact, as {@link factsOf} reads them from thoughts. */
export interface RefittedWeights {
  /** Goes into the policy's name. */
  name: string;
  weights: Readonly<Record<string, number>>;
}

/** The facts that a thought states; a phrase with an "and" of its own counts as its parts. */
export function factsOf(thought: string): string[] {
  return thought.split(' and ').filter(Boolean);
}

/** The options in the order of other weights; a fact without one keeps its own. */
export function reweigh(options: readonly Option[], { weights }: RefittedWeights): Option[] {
  return options
    .map((option) => ({
      ...option,
      score: option.facts.reduce((sum, { phrase, weight }) => {
        const parts = factsOf(phrase);
        const isKnown = parts.every((part) => Object.hasOwn(weights, part));
        return sum + (isKnown ? parts.reduce((all, part) => all + weights[part]!, 0) : weight);
      }, 0),
    }))
    .map((option, index) => ({ option, index }))
    .sort((a, b) => b.option.score - a.option.score || a.index - b.index)
    .map(({ option }) => option);
}
