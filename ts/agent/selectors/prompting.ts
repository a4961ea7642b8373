import type { Selector } from '../types.js';

/** The plain agent: the policy is asked for one action, and that is taken. */
export function prompting(): Selector {
  return {
    name: 'prompting',
    candidateCount: () => 1,
    needsScores: false,
    select: () => ({ selector: 'prompting', index: 0, reason: 'the only one asked for' }),
  };
}
