import type { Selector } from '../types.js';
import { chooseAbove, scoresFor } from './best-of-q.js';

/**
 * The candidate of highest mean Q minus `k` standard deviations over the heads: what the heads disagree on, because
 * the data shows little of it, counts for less. With one head it is best-of-q.
 * @param k at least 0; 0 is best-of-q
 * @param margin as of best-of-q, in units of the bound
 */
export function lowerBound(k: number, margin = 0): Selector {
  const name = `lower-bound@k=${k}${margin === 0 ? '' : `&margin=${margin}`}`;
  return {
    name,
    candidateCount: (n) => n,
    needsScores: true,
    select: ({ scores }) => {
      const { q, spread } = scoresFor(name, scores);
      const bounds = q.map((value, index) => value - k * spread[index]!);
      return { selector: name, ...chooseAbove(bounds, 'lower bound', margin) };
    },
  };
}
