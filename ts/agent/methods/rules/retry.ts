import { describeAction } from '../../../learning/templates.js';
import type { Proposer } from '../../types.js';
import { type Attempt, playAttempt } from '../attempt.js';
import { actionKey, type Rule, scored } from '../method.js';

/**
 * Retry in the manner of Reflexion (arXiv 2303.11366), without the environment's word: an attempt whose last action
 * has a Q below `below` is judged to have failed, and the task is begun again, up to `times` times. The policy is
 * told what was done, and what the failed attempt ended with is not offered in the same step again. The last attempt
 * counts.
 * @param times at least 1
 * @param below in units of Q
 */
export function retry(times: number, below: number): Rule {
  return {
    name: `retry@times=${times}&below=${below}`,
    needsScores: true,
    player: (inner) => async (context, selector) => {
      const failed: Attempt[] = [];
      for (;;) {
        const proposer = failed.length === 0 ? context.proposer : reflecting(context.proposer, failed);
        const attempt = await playAttempt(inner, context, scored(selector), failed.length, { proposer });
        const isBelieved = (attempt.lastQ ?? Number.NEGATIVE_INFINITY) >= below;
        if (isBelieved || failed.length >= times) return attempt.recordTo(context.recorder, failed);
        failed.push(attempt);
      }
    },
  };
}

function reflecting(inner: Proposer, failed: readonly Attempt[]): Proposer {
  const lessons = failed.map(({ steps }) => {
    const done = steps.map(({ candidates, selection }) =>
      describeAction(candidates[selection.index]!.action),
    );
    return `an earlier attempt seems to have failed; it did: ${done.join('; then ')}`;
  });
  const endings = new Set(
    failed.flatMap(({ steps }) => {
      const last = steps.at(-1);
      return last ? [`${last.index} ${actionKey(last.candidates[last.selection.index]!.action)}`] : [];
    }),
  );
  return {
    name: inner.name,
    async *propose(request) {
      const step = request.history.length;
      const observation = {
        ...request.observation,
        events: [...lessons, ...request.observation.events],
      };
      let offered = 0;
      for await (const event of inner.propose({ ...request, observation, n: request.n + failed.length })) {
        if (event.type === 'candidate') {
          if (offered >= request.n || endings.has(`${step} ${actionKey(event.candidate.action)}`)) continue;
          offered++;
        }
        yield event;
      }
    },
  };
}
