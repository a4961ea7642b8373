/** Finds the override margin of a model on validation seeds, or takes the one found under the same conditions. */
import { type MethodSpec, methodWithMargin, parseMethodSpec } from '../agent/methods/registry.js';
import { BoqError } from '../core/errors.js';
import { FolderRun } from '../store/run.js';
import {
  chooseMargin,
  defaultMarginGrid,
  type MarginConditions,
  type MarginOutcome,
  marginOutcome,
  marginRule,
  readMargin,
  sweepMargins,
  writeMargin,
} from './margin.js';
import type { OpenModel } from './models.js';
import { type EpisodeSource, type PlanProgress, runPlan } from './runner.js';
import {
  describeRun,
  type EpisodeOptions,
  episodeKeys,
  resolveStage,
  type SeedRange,
  type Stage,
  withBrowser,
} from './stage.js';

/** Episodes and margins that a margin is chosen on and from. */
export interface ValidationOptions {
  /** Task names and @sets; default: the evaluated tasks. */
  tasks?: readonly string[];
  /** Must lie apart from the evaluated seeds. Default 10,000 to 10,009. */
  seeds?: SeedRange;
  repeats?: number;
  /** Margins to choose from, at least 0. */
  grid?: readonly number[];
}

export interface ValidationStage {
  tasks: string[];
  seeds: SeedRange;
  repeats: number;
  grid: number[];
}

const plainSpec = parseMethodSpec('best-of-q');
const defaultSeeds: SeedRange = { from: 10_000, to: 10_009 };

/**
 * @param inUse false where no margin has to be found, so that the seeds may be anything
 * @throws BOQ_USAGE where a validation episode would be evaluated as well
 */
export function resolveValidation(stage: Stage, options: ValidationOptions, inUse: boolean): ValidationStage {
  const { seeds = defaultSeeds, repeats = 1, grid = defaultMarginGrid } = options;
  const tasks = options.tasks ? stage.benchmark.resolveTasks(options.tasks) : stage.tasks;
  const overlap = seeds.from <= stage.seeds.to && stage.seeds.from <= seeds.to;
  if (inUse && overlap && tasks.some((task) => stage.tasks.includes(task))) {
    throw new BoqError(
      'BOQ_USAGE',
      `Expected validation seeds apart from the evaluated ones, got ${seeds.from}-${seeds.to} and ` +
        `${stage.seeds.from}-${stage.seeds.to}: a setting chosen on the seeds that measure it flatters itself.`,
    );
  }
  if (grid.length === 0 || !grid.every((margin) => margin >= 0 && Number.isFinite(margin))) {
    throw new BoqError(
      'BOQ_USAGE',
      `Expected margins of at least 0 to choose from, got ${grid.join(', ') || 'none'}.`,
    );
  }
  return { tasks, seeds, repeats, grid: [...new Set(grid)].sort((a, b) => a - b) };
}

export interface ValidateMarginOptions {
  stage: Stage;
  validation: ValidationStage;
  /** The method whose margin is open; default best-of-q. */
  spec?: MethodSpec;
  model: OpenModel;
  source: EpisodeSource;
  /** Run folder for the validation episodes. */
  folder: string;
  signal?: AbortSignal;
  onProgress?: (progress: PlanProgress & { stage: string }) => void;
}

/**
 * The margin for these conditions. A model with a folder keeps it there as margin.json, with what the sweep showed.
 * @throws as runPlan; a validation episode that was given up is an error here, since the choice would be off
 */
export async function validateMargin(options: ValidateMarginOptions): Promise<number> {
  const { stage, validation, model, spec = plainSpec } = options;
  const method = methodWithMargin(spec, 0).name;
  const conditions: MarginConditions = {
    model: model.id,
    benchmark: stage.benchmark.name,
    ...validation,
    policy: stage.proposer.name,
    n: stage.n,
    maxSteps: stage.limits.maxSteps,
    seed: stage.seed,
    method,
  };
  const known = model.folder ? await readMargin(model.folder, conditions) : null;
  if (known) return known.margin;
  const points = await sweep(options);
  const { margin, rows } = chooseMargin(points);
  if (model.folder)
    await writeMargin(model.folder, { version: 1, margin, rule: marginRule, conditions, rows });
  return margin;
}

/** Which model, on which validation episodes. */
export interface ChooseMarginOptions extends Omit<EpisodeOptions, 'seeds' | 'repeats'> {
  model: OpenModel;
  /** The method whose margin is open; default best-of-q. */
  method?: string;
  /** Run folder for the validation episodes. */
  out: string;
  validation?: Omit<ValidationOptions, 'tasks'>;
}

/**
 * Finds a model's override margin without an evaluation, and keeps it in the model's folder.
 * @throws as {@link validateMargin}; BOQ_USAGE, BOQ_TASK_UNKNOWN
 */
export async function chooseModelMargin(options: ChooseMarginOptions): Promise<number> {
  const { model, method, out, validation = {}, signal, onProgress } = options;
  const stage = resolveStage({ ...options, seeds: validation.seeds ?? defaultSeeds });
  return withBrowser(stage, (source) =>
    validateMargin({
      stage,
      validation: resolveValidation(stage, validation, false),
      ...(method === undefined ? {} : { spec: parseMethodSpec(method) }),
      model,
      source,
      folder: out,
      ...(signal ? { signal } : {}),
      ...(onProgress ? { onProgress } : {}),
    }),
  );
}

async function sweep({
  stage,
  validation,
  spec = plainSpec,
  model,
  source,
  folder,
  signal,
  onProgress,
}: ValidateMarginOptions) {
  const { grid, ...episodes } = validation;
  const own: Stage = { ...stage, ...episodes };
  const run = await FolderRun.create(
    folder,
    await describeRun('evaluate', own, { selectors: [methodWithMargin(spec, 0).name], grid }),
  );
  const count = episodeKeys(own, { selector: '', generation: model.id }).length;
  return sweepMargins(count, grid, async (margin, chosen) => {
    const method = methodWithMargin(spec, margin);
    const all = episodeKeys(own, { selector: method.name, generation: model.id });
    const keys = chosen.map((index) => all[index]!);
    const faults = await runPlan({
      ...own,
      run,
      source,
      plan: keys.map((key) => ({ key, method, critic: model.critic })),
      ...(signal ? { signal } : {}),
      onProgress: (progress) => onProgress?.({ ...progress, stage: `margin ${margin}` }),
    });
    if (faults[0]) throw faults[0].error;
    return Promise.all(
      keys.map(async (key): Promise<MarginOutcome> => {
        const record = (await run.find(key))!;
        const outcome = marginOutcome(record, await run.steps(record));
        // Where the record does not show every decision, any margin may change the course.
        return method.isStepwise ? outcome : { ...outcome, gains: [0] };
      }),
    );
  });
}
