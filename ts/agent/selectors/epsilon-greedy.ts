import type { Selector } from '../types.js';

/**
 * How training data is gathered (A.2): the policy's first candidate with probability 1 - epsilon, else one of the
 * others, each as likely.
 * @param epsilon in [0, 1]; 0.3 to 0.5 in the paper
 */
export function epsilonGreedy(epsilon: number): Selector {
  const name = `epsilon-greedy@epsilon=${epsilon}`;
  return {
    name,
    candidateCount: (n) => n,
    needsScores: false,
    select: ({ candidates, random }) => {
      const others = candidates.length - 1;
      const explored = random.next() < epsilon && others > 0;
      return explored
        ? {
            selector: name,
            index: 1 + random.below(others),
            reason: `explored: drawn from the ${others} after the first`,
            evidence: { explored },
          }
        : { selector: name, index: 0, reason: "the policy's first", evidence: { explored } };
    },
  };
}
