import { createPolicy } from '../../policy/registry.js';
import type { Proposer } from '../../types.js';
import { actionKey, passOn, type Rule } from '../method.js';

/** So low that the page's options come in the order of their rank, without chance. */
const cold = 1e-6;

/**
 * Adds the `k` best options that the page itself offers, in the order of the page policy's facts, after the policy's
 * own candidates: what the policy forgot can still be chosen.
 * @param k at least 1
 */
export function pageDerived(k: number): Rule {
  const page = createPolicy('page', { temperature: cold });
  return {
    name: `page-derived@k=${k}`,
    needsScores: false,
    proposer: (inner): Proposer => ({
      name: inner.name,
      async *propose(request) {
        const known = yield* passOn(inner.propose(request));
        let added = 0;
        for await (const event of page.propose({ ...request, n: k + known.size })) {
          if (event.type !== 'candidate' || known.has(actionKey(event.candidate.action))) continue;
          if (added++ >= k) return;
          yield event;
        }
      },
    }),
  };
}
