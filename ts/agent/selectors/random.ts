import type { Selector } from '../types.js';

/** Uniform over the N candidates: the paper's baseline of that name (section 4.1). */
export function random(): Selector {
  return {
    name: 'random',
    candidateCount: (n) => n,
    needsScores: false,
    select: ({ candidates, random }) => {
      const index = random.below(candidates.length);
      return {
        selector: 'random',
        index,
        reason: `drawn from ${candidates.length}`,
        evidence: { explored: true },
      };
    },
  };
}
