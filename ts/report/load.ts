/** Reads run and model folders into what the report shows. Nothing here computes a statistic or writes a tag. */
import { basename, join, resolve } from 'node:path';
import sharp from 'sharp';
import { BoqError } from '../core/errors.js';
import { readCurve } from '../evaluation/loop/curve.js';
import { readResults } from '../evaluation/results.js';
import { groupBy } from '../evaluation/summary.js';
import { offlineTable, readOfflineReport } from '../learning/offline.js';
import { describeAction } from '../learning/templates.js';
import { type FolderRun, openRun } from '../store/run.js';
import type { EpisodeRecord, Json, StepRecord } from '../store/types.js';
import { type Comparison, compareRuns, type EvaluatedRun } from './compare.js';
import type { Collection, Example, ExampleStep, Provenance, ReportData, Training } from './data.js';
import { exists, type Facts, readEpisodes, readJson, readLines } from './folders.js';
import { significant } from './format.js';
import { type ChosenExample, selectExamples } from './select-examples.js';

/** What a report covers. */
export interface ReportOptions {
  /** Run folders (collected, evaluated), model folders and folders of loops, in any order. */
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
    evaluated.flatMap(({ results }) => results.models.map((model) => model.path)),
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
    loops: await Promise.all(
      folders.loops.map(async (path) => ({ name: basename(path), path, points: await readCurve(path) })),
    ),
    examples: examples.flat(),
    provenance: await Promise.all([
      ...[...folders.evaluated, ...collected].map(runProvenance),
      ...models.map((path, index) => modelProvenance(path, configs[index]!)),
    ]),
  };
}

/** Evaluation runs as compared, with their episodes: for tests of declared comparisons. */
export async function loadComparisons(paths: readonly string[]): Promise<Comparison[]> {
  const { evaluated } = await classify(paths);
  return compareRuns(await Promise.all(evaluated.map(loadEvaluated)));
}

interface Folders {
  loops: string[];
  evaluated: string[];
  collected: string[];
  models: string[];
}

async function classify(paths: readonly string[]): Promise<Folders> {
  const folders: Folders = { loops: [], evaluated: [], collected: [], models: [] };
  for (const path of new Set(paths.map((given) => resolve(given)))) {
    if (await exists(join(path, 'loop.json'))) {
      folders.loops.push(path);
    } else if (await exists(join(path, 'run.json'))) {
      const { kind } = (await openRun(path)).record;
      (kind === 'evaluate' ? folders.evaluated : folders.collected).push(path);
    } else if (await exists(join(path, 'config.json'))) {
      folders.models.push(path);
    } else {
      throw new BoqError(
        'BOQ_RUN_INVALID',
        `Expected a run folder (with run.json), a model folder (with config.json) or a loop's folder (with loop.json) ` +
          `at ${path}; it has none of them. Give the --out folder of collect.js, evaluate.js, train.js or iterate.js.`,
      );
    }
  }
  return folders;
}

/** Folders that other folders name, after those given; folders that are gone are left out. */
async function withReferences(given: string[], named: string[], marker: string): Promise<string[]> {
  const all = new Set(given);
  for (const path of named.map((name) => resolve(name))) {
    if (await exists(join(path, marker))) all.add(path);
  }
  return [...all];
}

async function loadEvaluated(path: string): Promise<EvaluatedRun> {
  const run = await openRun(path);
  return { run, results: await readResults(path), episodes: await readEpisodes(run) };
}

async function loadCollection(path: string): Promise<Collection> {
  const episodes = await readEpisodes(await openRun(path));
  const wins = (records: readonly EpisodeRecord[]) => records.filter((record) => record.reward > 0).length;
  return {
    name: basename(path),
    path,
    episodes: episodes.length,
    successes: wins(episodes),
    transitions: episodes.reduce((sum, record) => sum + record.steps, 0),
    byTask: Array.from(
      groupBy(episodes, (record) => record.key.task),
      ([task, own]) => ({ task, episodes: own.length, successes: wins(own) }),
    ),
  };
}

async function loadTraining(path: string, config: Facts): Promise<Training> {
  return {
    name: basename(path),
    path,
    curves: await loadCurves(join(path, 'metrics.jsonl')),
    facts: flatten({ steps: config.steps, config: config.config, parameters: config.parameters }),
    offline: await loadOffline(path),
  };
}

/** Models of older versions, and those without held-out episodes, have nothing to show. */
async function loadOffline(path: string): Promise<Training['offline']> {
  const report = await readOfflineReport(path).catch(() => null);
  return report?.regressor === undefined || report.transitions === 0 ? null : offlineTable(report);
}

/** One series a numeric field; the field `step` is the x axis. Fields that never change are settings, not curves. */
async function loadCurves(path: string): Promise<Training['curves']> {
  const lines = await readLines<Record<string, unknown>>(path);
  const series = new Map<string, { step: number; value: number }[]>();
  for (const line of lines) {
    const step = Number(line.step);
    for (const [metric, value] of Object.entries(line)) {
      if (metric === 'step' || typeof value !== 'number' || !Number.isFinite(value)) continue;
      const points = series.get(metric);
      if (points) points.push({ step, value });
      else series.set(metric, [{ step, value }]);
    }
  }
  return Array.from(series, ([metric, points]) => ({ metric, points: thinned(points, 400) }))
    .filter(({ points }) => points.some((point) => point.value !== points[0]!.value))
    .sort((a, b) => groupRank(a.metric) - groupRank(b.metric) || (a.metric < b.metric ? -1 : 1));
}

/** Losses first, then values, held-out figures, and what only a closer look needs. */
function groupRank(metric: string): number {
  const rank = ['loss', 'value', 'validation', 'grad'].indexOf(metric.split('/')[0]!);
  return rank === -1 ? 9 : rank;
}

/** At most `limit` points, first and last kept: more than pixels would only make the file heavier. */
function thinned<T>(points: readonly T[], limit: number): T[] {
  if (points.length <= limit) return [...points];
  return Array.from(
    { length: limit },
    (_, i) => points[Math.round((i * (points.length - 1)) / (limit - 1))]!,
  );
}

async function loadExamples(comparison: Comparison, options: ReportOptions): Promise<Example[]> {
  const method = comparison.entries.filter((entry) => entry.role === 'method').at(-1);
  const baseline = comparison.entries.find((entry) => entry.role === 'baseline');
  if (!method || !baseline) return [];
  const chosen = selectExamples(method, baseline, options.examples ?? 4);
  return Promise.all(chosen.map((example) => loadExample(example, method.label, baseline.label, options)));
}

async function loadExample(
  { run, record, reason, baseline }: ChosenExample,
  label: string,
  baselineLabel: string,
  { maxSteps = 8, imageWidth = 480 }: ReportOptions,
): Promise<Example> {
  const steps = await run.steps(record);
  return {
    heading: `${record.key.task}, seed ${record.key.seed}`,
    reason,
    label,
    record,
    steps: await Promise.all(
      steps.slice(0, maxSteps).map((step) => exampleStep(run, record, step, imageWidth)),
    ),
    omittedSteps: Math.max(0, steps.length - maxSteps),
    baseline: baseline && {
      label: baselineLabel,
      record: baseline.record,
      actions: (await baseline.run.steps(baseline.record)).map((step) => {
        const executed = step.candidates[step.selection.index];
        return `${executed ? describeAction(executed.action) : 'no valid candidate'}: ${step.result.message}`;
      }),
    },
  };
}

async function exampleStep(
  run: FolderRun,
  record: EpisodeRecord,
  step: StepRecord,
  imageWidth: number,
): Promise<ExampleStep> {
  return {
    index: step.index,
    url: step.observation.url,
    image: await embedImage(run.shotPath(record.attempt, step.observation.screenshot), imageWidth),
    viewport: step.observation.viewport,
    point: step.grounding?.point ?? null,
    candidates: step.candidates,
    scores: step.scores,
    chosen: step.selection.index,
    reason: step.selection.reason,
    result: step.result.message,
    ok: step.result.ok,
  };
}

/** A small WebP as a data URL; null where the file is gone or no image, which the page says. */
async function embedImage(path: string, width: number): Promise<string | null> {
  try {
    const bytes = await sharp(path)
      .resize({ width, withoutEnlargement: true })
      .webp({ quality: 70 })
      .toBuffer();
    return `data:image/webp;base64,${bytes.toString('base64')}`;
  } catch {
    return null;
  }
}

async function runProvenance(path: string): Promise<Provenance> {
  const { kind, createdAt, seed, gitCommit, versions, config } = (await openRun(path)).record;
  return {
    name: `${kind} ${basename(path)}`,
    path,
    facts: flatten({ created: createdAt, seed, commit: gitCommit ?? 'unknown', versions, config }),
  };
}

async function modelProvenance(path: string, config: Facts): Promise<Provenance> {
  return { name: `model ${basename(path)}`, path, facts: flatten(config) };
}

/** The embedding folders' runs that a model was trained on. */
function dataPaths(config: Facts): string[] {
  const data = Array.isArray(config.data) ? config.data : [];
  return data.flatMap((entry) =>
    entry !== null && typeof entry === 'object' && !Array.isArray(entry) && typeof entry.path === 'string'
      ? [resolve(entry.path, '../..')]
      : [],
  );
}

/** Nested settings as `a.b: value`; lists on one line, long ones cut. */
function flatten(value: { [key: string]: Json | undefined }, prefix = ''): [string, string][] {
  return Object.entries(value).flatMap(([name, entry]): [string, string][] => {
    if (entry === undefined) return [];
    if (entry !== null && typeof entry === 'object' && !Array.isArray(entry)) {
      return flatten(entry, `${prefix}${name}.`);
    }
    const text =
      typeof entry === 'number'
        ? Number.isInteger(entry)
          ? String(entry)
          : significant(entry)
        : typeof entry === 'string'
          ? entry
          : JSON.stringify(entry);
    return [[`${prefix}${name}`, text.length > 600 ? `${text.slice(0, 600)} …` : text]];
  });
}
