import type { Proposer } from '../../types.js';
import type { Rule } from '../method.js';
import { anew } from './union.js';

/**
 * Independent samples: the policy is asked `k` times for one action. What it says more than once stays more than
 * once, so that a majority can be told.
 * @param k at least 1
 */
export function samples(k: number): Rule {
  return {
    name: `samples@k=${k}`,
    needsScores: false,
    proposer: (inner): Proposer => ({
      name: inner.name,
      async *propose(request) {
        for (let call = 0; call < k; call++) yield* inner.propose({ ...anew(request, call), n: 1 });
      },
    }),
  };
}
