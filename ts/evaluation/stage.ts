/** What collecting and evaluating share: a benchmark, a policy, a browser, and a run that they play into. */
import { BrowserPool } from '../agent/browser/pool.js';
import { createLocalizer } from '../agent/localizer/registry.js';
import { createPolicy, type VlmChoice } from '../agent/policy/registry.js';
import type { Localizer, Proposer } from '../agent/types.js';
import { gitCommit, packageVersion } from '../core/package.js';
import type { CreateRun } from '../store/run.js';
import type { EpisodeKey } from '../store/types.js';
import { openBenchmark } from './benchmarks/registry.js';
import type { Benchmark } from './benchmarks/types.js';
import { benchmarkEpisodes } from './episode-source.js';
import type { EpisodeSource, PlanProgress } from './runner.js';

/** First and last episode seed, both included. */
export interface SeedRange {
  from: number;
  to: number;
}

/** A policy, and its temperature where it samples. */
export interface PolicyChoice {
  policy: string;
  temperature?: number;
}

/** Which episodes are played, and by whom. */
export interface EpisodeOptions {
  /** A benchmark's name, or one of your own. */
  benchmark: string | Benchmark;
  /** Task names and @sets. */
  tasks: readonly string[];
  seeds: SeedRange;
  /** Episodes of each task and seed; default 1. */
  repeats?: number;
  /** A policy's name, or one of your own. Default page. */
  policy?: string | Proposer;
  temperature?: number;
  /** A localizer's name, e.g. `holo1.5,page`, or one of your own. Default page. */
  localizer?: string | Localizer;
  /** Where the models are, for parts that ask one; the environment says so where left out. */
  vlm?: VlmChoice;
  /** Candidates a step; default 3. */
  n?: number;
  /** Default: the benchmark's. */
  maxSteps?: number;
  /** Limit on one episode; default 10 minutes. */
  maxMs?: number;
  /** Run seed, from which all draws come; default 0. */
  seed?: number;
  /** Episodes at a time; default 6. */
  workers?: number;
  /** Default 2. */
  retries?: number;
  /** Shows the browser's windows. */
  headed?: boolean;
  signal?: AbortSignal;
  onProgress?: (progress: PlanProgress & { stage: string }) => void;
}

/** Options with all defaults filled in and all names resolved. */
export interface Stage {
  benchmark: Benchmark;
  tasks: string[];
  seeds: SeedRange;
  repeats: number;
  proposer: Proposer;
  localizer: Localizer;
  n: number;
  limits: { maxSteps: number; maxMs: number };
  seed: number;
  workers: number;
  retries: number;
  headed: boolean;
}

/** @throws BOQ_USAGE, BOQ_TASK_UNKNOWN, BOQ_FILE_NOT_FOUND */
export function resolveStage(options: EpisodeOptions): Stage {
  const { policy = 'page', localizer = 'page', temperature, vlm = {} } = options;
  const benchmark =
    typeof options.benchmark === 'string' ? openBenchmark(options.benchmark) : options.benchmark;
  return {
    benchmark,
    tasks: benchmark.resolveTasks(options.tasks),
    seeds: options.seeds,
    repeats: options.repeats ?? 1,
    proposer:
      typeof policy === 'string'
        ? createPolicy(policy, { vlm, ...(temperature === undefined ? {} : { temperature }) })
        : policy,
    localizer: typeof localizer === 'string' ? createLocalizer(localizer, vlm) : localizer,
    n: options.n ?? 3,
    limits: { maxSteps: options.maxSteps ?? benchmark.defaults.maxSteps, maxMs: options.maxMs ?? 600_000 },
    seed: options.seed ?? 0,
    workers: options.workers ?? 6,
    retries: options.retries ?? 2,
    headed: options.headed ?? false,
  };
}

/** The part of run.json that every kind of run has. */
export async function describeRun(
  kind: CreateRun['kind'],
  stage: Stage,
  config: CreateRun['config'],
): Promise<CreateRun> {
  const { benchmark, tasks, seeds, repeats, proposer, localizer, n, limits, workers, retries, headed } =
    stage;
  return {
    kind,
    config: {
      benchmark: benchmark.name,
      tasks,
      seeds: { from: seeds.from, to: seeds.to },
      repeats,
      policy: proposer.name,
      localizer: localizer.name,
      n,
      ...limits,
      viewport: { ...benchmark.defaults.viewport },
      ...config,
      workers,
      retries,
      headed,
    },
    seed: stage.seed,
    versions: { '@boq/native': await packageVersion(), node: process.versions.node },
    gitCommit: await gitCommit(),
  };
}

/** Keys of all tasks, seeds and repeats; neighbours in the plan are of different tasks, so that all advance alike. */
export function episodeKeys(stage: Stage, choice: Pick<EpisodeKey, 'selector' | 'generation'>): EpisodeKey[] {
  const keys: EpisodeKey[] = [];
  for (let seed = stage.seeds.from; seed <= stage.seeds.to; seed++) {
    for (let repeat = 0; repeat < stage.repeats; repeat++) {
      for (const task of stage.tasks) {
        keys.push({
          benchmark: stage.benchmark.name,
          task,
          seed,
          policy: stage.proposer.name,
          ...choice,
          repeat,
        });
      }
    }
  }
  return keys;
}

/** Lends a browser's episodes for the time of `work`. */
export async function withBrowser<T>(stage: Stage, work: (source: EpisodeSource) => Promise<T>): Promise<T> {
  const pool = new BrowserPool({
    size: stage.workers,
    headless: stage.headed ? false : 'shell',
    viewport: stage.benchmark.defaults.viewport,
  });
  try {
    return await work(benchmarkEpisodes(stage.benchmark, pool));
  } finally {
    await pool.close();
  }
}
