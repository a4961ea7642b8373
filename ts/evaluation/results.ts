/**
 * results.json and results.csv: what an evaluation measured, written once all its episodes are committed. Both are
 * derived from the commits and can be made again at any time.
 */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { BoqError } from '../core/errors.js';
import type { Outcome } from '../store/types.js';
import type { Estimand, EvaluationRow, SelectorSummary } from './summary.js';

/** results.json of an evaluation run. */
export interface Results {
  version: 1;
  benchmark: string;
  tasks: string[];
  /** First and last episode seed, both included. */
  seeds: { from: number; to: number };
  repeats: number;
  policy: string;
  n: number;
  /** Every model that scored, controls included; empty where no selector needed one. */
  models: EvaluatedModel[];
  /** What was compared, in order; entries of one label are pooled, as several trainings of one method are. */
  entries: EvaluatedEntry[];
  /** What `interval` speaks about; 'unseen-seeds' where training met every task. */
  estimand: Estimand;
  baseline: string;
  selectors: Record<string, SelectorSummary>;
}

/** A model as results.json names it. */
export interface EvaluatedModel {
  /** Model folder as given; the name of a control that needs none. */
  path: string;
  /** Generation in the episode keys. */
  id: string;
  trainingTasks: string[];
  /** Why this model should gain nothing, e.g. 'shuffled', where it is a control; else null. */
  control: string | null;
}

/** One selector with one model. */
export interface EvaluatedEntry {
  /** Its name under `selectors`: the selector as the user wrote it, and the control in brackets. */
  label: string;
  /** Selector and generation of its episodes. */
  selector: string;
  generation: string;
  /** Override margin that was chosen on validation seeds; null where none was. */
  chosenMargin: number | null;
}

/** One line of results.csv. */
export interface ResultRow extends EvaluationRow {
  outcome: Outcome;
  policy: string;
  /** Folder of the attempt that counts, relative to the run. */
  attempt: string;
}

export const resultColumns = [
  'selector',
  'task',
  'seed',
  'repeat',
  'training',
  'success',
  'rawReward',
  'steps',
  'outcome',
  'policy',
  'attempt',
  'proposals',
  'actions',
  'embeddings',
  'starts',
] as const;

/** CSV after RFC 4180: a header, one line an episode, text quoted where it must be. */
export function resultsCsv(rows: readonly ResultRow[]): string {
  const cell = (value: string | number | boolean | null): string => {
    const text = value === null ? '' : String(value);
    return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };
  const lines = rows.map(({ costs, ...row }) => {
    const { proposals = null, steps = null, embeddings = null, starts = null } = costs ?? {};
    const values = { ...row, proposals, actions: steps, embeddings, starts };
    return resultColumns.map((column) => cell(values[column])).join(',');
  });
  return `${[resultColumns.join(','), ...lines].join('\n')}\n`;
}

/**
 * Reads runs/<run>/results.json.
 * @throws BOQ_FILE_NOT_FOUND where the evaluation has not finished, BOQ_RUN_INVALID where the file is not one of ours
 */
export async function readResults(run: string): Promise<Results> {
  const path = join(run, 'results.json');
  let text: string;
  try {
    text = await readFile(path, 'utf8');
  } catch (cause) {
    throw new BoqError(
      'BOQ_FILE_NOT_FOUND',
      `Expected ${path}, which an evaluation writes when it ends: run evaluate.js --out ${run} again to finish it.`,
      { cause },
    );
  }
  try {
    const results = JSON.parse(text) as Results;
    if (results.version === 1 && typeof results.selectors === 'object') return results;
  } catch {
    // Told below, with the path.
  }
  throw new BoqError(
    'BOQ_RUN_INVALID',
    `Expected results of version 1 in ${path}: delete the file and run evaluate.js --out ${run} to write it again.`,
  );
}
