import type { Candidate } from '../../../store/types.js';
import type { Proposer } from '../../types.js';
import { actionKey, type Rule } from '../method.js';
import { anew } from './union.js';

/**
 * Abstains and asks again: where the best Q lies more than `drop` below V, nothing that was offered is worth what
 * the state promises, and the policy is asked for `more` other candidates.
 * @param drop at least 0, in units of Q
 * @param more at least 1
 */
export function askAgain(drop: number, more: number): Rule {
  return {
    name: `ask-again@drop=${drop}&more=${more}`,
    needsScores: true,
    proposer: (inner, { critic }): Proposer => ({
      name: inner.name,
      async *propose(request) {
        const offered: Candidate[] = [];
        for await (const event of inner.propose(request)) {
          if (event.type === 'candidate') offered.push(event.candidate);
          yield event;
        }
        if (!critic || offered.length === 0) return;
        const { instruction, history, observation, signal } = request;
        const scoring = critic.begin({
          ...{ instruction, history },
          screenshot: observation.screenshot,
          ...(signal ? { signal } : {}),
        });
        for (const candidate of offered) scoring.add(candidate);
        const { q, v } = await scoring.scores();
        if (Math.max(...q) >= v - drop) return;
        const known = new Set(offered.map(({ action }) => actionKey(action)));
        let added = 0;
        for await (const event of inner.propose({ ...anew(request, 1), n: request.n + more })) {
          if (event.type === 'candidate') {
            const key = actionKey(event.candidate.action);
            if (known.has(key) || added >= more) continue;
            known.add(key);
            added++;
          }
          yield event;
        }
      },
    }),
  };
}
