/** Reads run and model folders into what the report shows. Nothing here computes a statistic or writes a tag. */
import { readFile, stat } from 'node:fs/promises';
import { basename, join, resolve } from 'node:path';
import sharp from 'sharp';
import { BoqError } from '../core/errors.js';
import { readResults } from '../evaluation/results.js';
import { groupBy } from '../evaluation/summary.js';
import { openRun } from '../store/run.js';
import type { EpisodeRecord, Json, StepRecord } from '../store/types.js';
import { compareRuns, type Comparison, type EvaluatedRun } from './compare.js';
import {
  type Collection,
  describeAction,
  type Example,
  type ExampleStep,
  type Provenance,
  type ReportData,
  type Training,
} from './data.js';
import { integer, significant } from './format.js';
import { type ChosenExample, selectExamples } from './select-examples.js';

export interface ReportOptions {
  /** Run folders (collected, evaluated) and model folders, in any order. */
  paths: readonly string[];
  title?: string;
  /** Episodes shown step by step for each evaluation, default 4. */
  examples?: number;
  /** Steps shown of one episode, default 8. */
  maxSteps?: number;
  /** Width of the screenshots in pixels, default 480; smaller ones stay as they are. */
  imageWidth?: number;
}

/**
 * Everything the report needs. Models behind an evaluation and runs behind a model are added by themselves where
 * their folders still exist.
 * @throws BOQ_FILE_NOT_FOUND, BOQ_RUN_INVALID where a path is neither a run nor a model, or is damaged
 */
export async function loadReport(options: ReportOptions): Promise<ReportData> {
  const folders = await classify(options.paths);
  const evaluated = await Promise.all(folders.evaluated.map(loadEvaluated));
  const models = await withReferences(
    folders.models,
    evaluated.flatMap(({ results }) => (results.model ? [results.model.path] : [])),
    'config.json',
  );
  const configs = await Promise.all(models.map((path) => readJson(join(path, 'config.json'))));
  const collected = await withReferences(
    folders.collected,
    configs.flatMap((config) => dataPaths(config)),
    'run.json',
  );
  const comparisons = compareRuns(evaluated);
  const examples = await Promise.all(comparisons.map((comparison) => loadExamples(comparison, options)));
  return {
    title: options.title ?? 'Best-of-Q report',
    createdAt: new Date().toISOString(),
    evaluations: comparisons.map(({ evaluation }) => evaluation),
    collections: await Promise.all(collected.map(loadCollection)),
    trainings: await Promise.all(models.map((path, index) => loadTraining(path, configs[index]!))),
    examples: examples.flat(),
    provenance: await Promise.all([
      ...[...folders.evaluated, ...collected].map(runProvenance),
      ...models.map((path, index) => modelProvenance(path, configs[index]!)),
    ]),
  };
}
