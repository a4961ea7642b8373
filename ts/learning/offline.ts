/** What held-out episodes say about a trained model: offline.json of its folder, and the table that a user sees. */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { BoqError } from '../core/errors.js';

/** How well one predictor tells successful episodes from failed ones; null where there was nothing to measure. */
export interface PredictorFigures {
  /** Chance that a transition of a successful episode scores above one of a failed episode. */
  auc: number | null;
  /** Mean squared error of the value, clamped to [0, 1], as a chance of success. */
  brier: number | null;
  /** Mean distance between value and share of successes over ten bins of equal size. */
  calibrationError: number | null;
  /** Over pairs of actions of unequal return that were tried in one state: how often the better one scores higher. */
  pairwiseAccuracy: number | null;
}

/** What argmax would pick among the candidates that were offered. */
export interface PickFigures {
  /** Steps with at least two candidates. */
  decisions: number;
  /** Share of each candidate index. */
  byIndex: (number | null)[];
  /** Share of steps in which the first candidate is left. */
  overrideRate: number | null;
  agreementWithExecuted: number | null;
  meanGainOverFirst: number | null;
}

/** offline.json; docs/data-formats.md describes the fields. */
export interface OfflineReport {
  /** Held-out transitions; with 0 there is nothing else. */
  transitions: number;
  q: PredictorFigures;
  v: PredictorFigures;
  /** The success rate of training transitions with the same step number. */
  stepNumber: PredictorFigures;
  /** The success rate of training transitions of the same task. */
  task: PredictorFigures;
  /** A network regressed on discounted returns, from the same features. */
  regressor: (PredictorFigures & { picks: PickFigures }) | null;
  byStep: {
    step: number;
    transitions: number;
    q: number | null;
    v: number | null;
    regressor: number | null;
  }[];
  pairs: number;
  revisitedStates: number;
  rankAgreementAtRevisited: number | null;
  picks: PickFigures;
  /** Rank correlation of the spread over heads with the error of Q. */
  spreadAgainstError: number | null;
}

/** @throws BoqError BOQ_FILE_NOT_FOUND, BOQ_FILE_CORRUPT */
export async function readOfflineReport(model: string): Promise<OfflineReport> {
  return (await readModelFile(model, 'offline.json')) as OfflineReport;
}

async function readModelFile(model: string, name: string): Promise<unknown> {
  const path = join(model, name);
  const text = await readFile(path, 'utf8').catch(() => {
    throw new BoqError('BOQ_FILE_NOT_FOUND', `${path}: expected a trained model; train it again`);
  });
  try {
    return JSON.parse(text);
  } catch {
    throw new BoqError('BOQ_FILE_CORRUPT', `${path} is not JSON; train the model again`);
  }
}

/** The predictors beside one another, a row each, with the names of the columns; then what else is worth a line. */
export function offlineTable(report: OfflineReport): { head: string[]; rows: string[][]; notes: string[] } {
  const show = (value: number | null | undefined): string => (value == null ? '—' : value.toFixed(3));
  const row = (name: string, figures: PredictorFigures | null): string[] => [
    name,
    show(figures?.auc),
    show(figures?.brier),
    show(figures?.calibrationError),
    show(figures?.pairwiseAccuracy),
  ];
  const percent = (share: number | null): string => (share === null ? '—' : `${(100 * share).toFixed(0)} %`);
  const picks = (name: string, { byIndex, overrideRate }: PickFigures): string =>
    `${name} would pick candidates ${byIndex.map((share, i) => `${i + 1}: ${percent(share)}`).join(', ')}; ` +
    `it leaves the first in ${percent(overrideRate)} of the steps.`;
  const notes = [
    `On ${report.transitions} held-out transitions; pairs of tried actions: ${report.pairs}.`,
    picks('Q', report.picks),
  ];
  if (report.regressor !== null) notes.push(picks('The regressor', report.regressor.picks));
  if (report.spreadAgainstError !== null) {
    notes.push(`Rank correlation of the heads' spread with the error: ${show(report.spreadAgainstError)}.`);
  }
  return {
    head: ['predicts success', 'AUC', 'Brier', 'calibration error', 'pairs right'],
    rows: [
      row('Q', report.q),
      row('V alone', report.v),
      row('Monte-Carlo regressor', report.regressor),
      row('number of the step alone', report.stepNumber),
      row('task alone', report.task),
    ],
    notes,
  };
}
