import { BoqError } from '../../core/errors.js';
import type { StepScores } from '../../store/types.js';
import type { Selector } from '../types.js';

/** Scores closer than this are equal, and the earlier candidate wins. */
export const tieWidth = 1e-6;

/** Best values below this are noise about 0: they rescue nothing. */
const leastHope = 0.02;

/**
 * The candidate of highest Q (the paper's rule), or with a margin: the policy's first is left only for a gain in Q
 * of more than `margin`. The best is searched among all candidates first, so a larger margin never changes which
 * candidate would be taken instead of the first, only whether it is.
 * @param margin at least 0, in units of Q; 0 is the paper's rule
 * @param rescue between 0 and 1: whatever the margin, the first is also left where its Q is less than this share of the
 *   best, because where it leads nowhere there is nothing to lose; 0 never does
 */
export function bestOfQ(margin = 0, rescue = 0): Selector {
  const settings = [margin > 0 ? `margin=${margin}` : '', rescue > 0 ? `rescue=${rescue}` : ''].filter(
    Boolean,
  );
  const name = settings.length === 0 ? 'best-of-q' : `best-of-q@${settings.join('&')}`;
  return {
    name,
    candidateCount: (n) => n,
    needsScores: true,
    select: ({ scores }) => {
      return { selector: name, ...chooseAbove(scoresFor(name, scores).q, 'Q', margin, rescue) };
    },
  };
}

/** @throws BOQ_INVALID_ARGUMENT where a selector that needs scores got none */
export function scoresFor(selector: string, scores: StepScores | null): StepScores {
  if (scores) return scores;
  throw new BoqError('BOQ_INVALID_ARGUMENT', `expected scores for the selector ${selector}, got none`);
}

/** What a choice rests on. */
export type GainEvidence = {
  /** Index of the highest value. */
  best: number;
  /** By how much it lies above the first. */
  gain: number;
  margin: number;
  /** The first was left although the gain is within the margin. */
  rescued: boolean;
};

/**
 * The highest value, or the first where the gain over it is within the margin and it is not to be rescued from.
 * @param what the values are, for the reason
 * @param margin, rescue as of {@link bestOfQ}
 */
export function chooseAbove(
  values: readonly number[],
  what: string,
  margin: number,
  rescue = 0,
): { index: number; reason: string; evidence: GainEvidence } {
  const best = argmax(values);
  const [first, highest] = [values[0]!, values[best]!];
  const gain = highest - first;
  const isAbove = gain > Math.max(margin, tieWidth);
  const rescued = !isAbove && gain > leastHope && Math.max(0, first) < rescue * highest;
  const index = isAbove || rescued ? best : 0;
  const reason =
    best === 0
      ? `${what} ${format(first)} is the highest`
      : index === 0
        ? `the first stays: ${what} ${format(highest)} is only ${format(gain)} above its ${format(first)}`
        : rescued
          ? `nothing to lose: ${what} ${format(highest)} where the first has ${format(first)}`
          : `${what} ${format(highest)}, ${format(gain)} above the first`;
  return { index, reason, evidence: { best, gain, margin, rescued } };
}

/** The earliest of those within {@link tieWidth} of the highest. */
export function argmax(values: readonly number[]): number {
  const highest = Math.max(...values);
  return values.findIndex((value) => value >= highest - tieWidth);
}

function format(value: number): string {
  return value.toFixed(3);
}
