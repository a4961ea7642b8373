import type { Selector } from '../types.js';

/**
 * Majority vote: the action offered most often; of equals the earlier. A list of different candidates holds each
 * once, so it is meant for independent samples: `majority+samples@k=5`.
 */
export function majority(): Selector {
  return {
    name: 'majority',
    candidateCount: (n) => n,
    needsScores: false,
    select: ({ candidates }) => {
      const keys = candidates.map(({ action }) =>
        JSON.stringify(Object.entries(action).sort(([a], [b]) => (a < b ? -1 : 1))),
      );
      const votes = keys.map((key) => keys.filter((other) => other === key).length);
      const index = votes.indexOf(Math.max(...votes));
      const reason = `${votes[index]} of ${candidates.length} votes`;
      return { selector: 'majority', index, reason, evidence: { votes } };
    },
  };
}
