import { BoqError } from '../../core/errors.js';
import type { StepScores } from '../../store/types.js';
import type { Selector } from '../types.js';

/** Scores closer than this are equal, and the earlier candidate wins. */
export const tieWidth = 1e-6;

/**
 * The candidate of highest Q (the paper's rule), or with a margin: the policy's first is left only for a gain in Q
 * of more than `margin`. The best is searched among all candidates first, so a larger margin never changes which
 * candidate would be taken instead of the first, only whether it is.
 * @param margin at least 0, in units of Q; 0 is the paper's rule
 */
export function bestOfQ(margin = 0): Selector {
  const name = margin === 0 ? 'best-of-q' : `best-of-q@margin=${margin}`;
  return {
    name,
    candidateCount: (n) => n,
    needsScores: true,
    select: ({ scores }) => {
      return { selector: name, ...chooseAbove(scoresFor(name, scores).q, margin, 'Q') };
    },
  };
}

/** @throws BOQ_INVALID_ARGUMENT where a selector that needs scores got none */
export function scoresFor(selector: string, scores: StepScores | null): StepScores {
  if (scores) return scores;
  throw new BoqError('BOQ_INVALID_ARGUMENT', `expected scores for the selector ${selector}, got none`);
}

/**
 * The highest value, or the first where the gain over it is within the margin.
 * @param what the values are, for the reason
 */
export function chooseAbove(
  values: readonly number[],
  margin: number,
  what: string,
): { index: number; reason: string; evidence: { best: number; gain: number; margin: number } } {
  const best = argmax(values);
  const gain = values[best]! - values[0]!;
  const index = best !== 0 && gain > Math.max(margin, tieWidth) ? best : 0;
  const reason =
    best === 0
      ? `${what} ${format(values[0]!)} is the highest`
      : index === 0
        ? `the first stays: ${what} ${format(values[best]!)} is only ${format(gain)} above its ${format(values[0]!)}`
        : `${what} ${format(values[best]!)}, ${format(gain)} above the first`;
  return { index, reason, evidence: { best, gain, margin } };
}

/** The earliest of those within {@link tieWidth} of the highest. */
export function argmax(values: readonly number[]): number {
  const highest = Math.max(...values);
  return values.findIndex((value) => value >= highest - tieWidth);
}

function format(value: number): string {
  return value.toFixed(3);
}
