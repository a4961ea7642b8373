import { randomSource } from '../../../core/random.js';
import type { ProposeRequest, Proposer } from '../../types.js';
import { actionKey, type Rule } from '../method.js';

/**
 * The policy is asked several times, each time with draws of its own, and what it offers is joined; of equal actions
 * the first stays. The first call is the one that there would be without this rule.
 * @param calls at least 2
 */
export function union(calls: number): Rule {
  return {
    name: `union@calls=${calls}`,
    needsScores: false,
    proposer: (inner): Proposer => ({
      name: inner.name,
      async *propose(request) {
        const known = new Set<string>();
        for (let call = 0; call < calls; call++) {
          for await (const event of inner.propose(anew(request, call))) {
            if (event.type === 'candidate') {
              const key = actionKey(event.candidate.action);
              if (known.has(key)) continue;
              known.add(key);
            }
            yield event;
          }
        }
      },
    }),
  };
}

/** The same request with other draws; call 0 keeps its own. */
export function anew(request: ProposeRequest, call: number): ProposeRequest {
  if (call === 0) return request;
  return { ...request, random: randomSource([request.random.next(), call]) };
}
