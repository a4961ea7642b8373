import type { Selector } from '../types.js';

/** The policy is asked for N candidates and its own first is taken: epsilon-greedy with epsilon 0. */
export function first(): Selector {
  return {
    name: 'first',
    candidateCount: (n) => n,
    needsScores: false,
    select: () => ({ selector: 'first', index: 0, reason: "the policy's first" }),
  };
}
