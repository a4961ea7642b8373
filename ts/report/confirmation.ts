/** The comparisons that an experiment was declared to make, tested on its finished runs and corrected together. */
import { basename } from 'node:path';
import { BoqError } from '../core/errors.js';
import type { Comparison as Declared } from '../evaluation/experiment.js';
import {
  average,
  bootstrapPValue,
  clusteredInterval,
  holmAdjust,
  type Interval,
  stratifiedInterval,
} from '../evaluation/statistics.js';
import { type Estimand, type EvaluationRow, pairedDifferences } from '../evaluation/summary.js';
import { type Comparison, type LabelledEpisodes, rowOf } from './compare.js';

/** A declared comparison and what came of it. */
export interface Confirmed extends Declared {
  estimand: Estimand;
  pairs: number;
  difference: number;
  /** 95 %, for the estimand; not corrected. */
  interval: Interval;
  pValue: number;
  /** After Holm's correction over all comparisons of the experiment. */
  adjusted: number;
}

/**
 * @param name of the experiment: its runs are NAME-PART
 * @throws BOQ_DATA_INVALID where a run or a label is missing
 */
export function confirm(
  name: string,
  comparisons: readonly Comparison[],
  declared: readonly Declared[],
  bootstrapSeed = 0,
): Confirmed[] {
  const options = { seed: bootstrapSeed };
  const tested = declared.map(({ part, label, against }) => {
    const found = comparisons.find(({ entries }) =>
      entries.some(({ episodes }) => episodes.some(({ run }) => basename(run.folder) === `${name}-${part}`)),
    );
    if (!found) throw missing(`a finished run ${name}-${part}`);
    const { estimand } = found.evaluation;
    const pairs = pairedDifferences(rowsOf(found, label), rowsOf(found, against));
    const scheme = estimand === 'unseen-seeds' ? 'stratified' : 'clustered';
    return {
      ...{ part, label, against, estimand },
      pairs: pairs.length,
      difference: average(pairs.map(({ value }) => value)),
      interval:
        scheme === 'stratified' ? stratifiedInterval(pairs, options) : clusteredInterval(pairs, options),
      pValue: bootstrapPValue(pairs, scheme, options),
    };
  });
  const adjusted = holmAdjust(tested.map(({ pValue }) => pValue));
  return tested.map((one, index) => ({ ...one, adjusted: adjusted[index]! }));
}

/** Trainings by number: those of two methods on the same episodes have different models, and are pairs all the same. */
function rowsOf({ entries }: Comparison, label: string): EvaluationRow[] {
  const entry: LabelledEpisodes | undefined = entries.find((one) => one.label === label);
  if (!entry) throw missing(`"${label}" among ${entries.map((one) => one.label).join('; ')}`);
  const numbers = new Map<string, number>();
  return entry.episodes.map(({ record }) => {
    const row = rowOf(label, record);
    if (row.training === '') return row;
    if (!numbers.has(row.training)) numbers.set(row.training, numbers.size);
    return { ...row, training: String(numbers.get(row.training)) };
  });
}

function missing(what: string): BoqError {
  return new BoqError(
    'BOQ_DATA_INVALID',
    `Expected ${what} for a declared comparison: finish the study first.`,
  );
}
