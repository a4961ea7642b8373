import { type Attempt, playAttempt } from '../attempt.js';
import { type Rule, scored } from '../method.js';

/**
 * Best of k trajectories: the task is played `k` times from its start, and the trajectory whose last action has the
 * highest Q counts; of equals the earlier. The reward is not looked at.
 * @param k at least 2
 */
export function trajectories(k: number): Rule {
  return {
    name: `trajectories@k=${k}`,
    needsScores: true,
    player: (inner) => async (context, selector) => {
      const attempts: Attempt[] = [];
      for (let index = 0; index < k; index++)
        attempts.push(await playAttempt(inner, context, scored(selector), index));
      const values = attempts.map(({ lastQ }) => lastQ ?? Number.NEGATIVE_INFINITY);
      const best = attempts[values.indexOf(Math.max(...values))]!;
      return best.recordTo(
        context.recorder,
        attempts.filter((attempt) => attempt !== best),
      );
    },
  };
}
