/**
 * The evaluate stage: selectors side by side on the same tasks and seeds, each with every model, controls included.
 * The run holds all their episodes; results.json and results.csv are derived from its commits.
 */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Method } from '../agent/methods/method.js';
import {
  createMethod,
  isMarginOpen,
  type MethodSpec,
  methodWithMargin,
  parseMethodSpec,
} from '../agent/methods/registry.js';
import { BoqError } from '../core/errors.js';
import { keyName } from '../store/keys.js';
import { writeFault } from '../store/publish.js';
import { FolderRun } from '../store/run.js';
import type { StepRecord, Usage } from '../store/types.js';
import { keptMargin, methodAsPath } from './margin.js';
import type { OpenModel } from './models.js';
import { type EvaluatedEntry, type ResultRow, type Results, resultsCsv } from './results.js';
import { type EpisodeSource, type PlanFault, type PlannedEpisode, runPlan } from './runner.js';
import {
  describeRun,
  type EpisodeOptions,
  episodeKeys,
  resolveStage,
  type Stage,
  withBrowser,
} from './stage.js';
import { type Estimand, summarizeSelectors } from './summary.js';
import {
  resolveValidation,
  type ValidationOptions,
  type ValidationStage,
  validateMargin,
} from './validation.js';

/** Which selectors are compared, with which models, on which episodes. */
export interface EvaluateOptions extends EpisodeOptions {
  /** Run folder to begin or to continue. */
  out: string;
  /** Specifications, e.g. `best-of-q@margin=0.05`; the margin `auto` is chosen on validation seeds. */
  selectors: readonly string[];
  /** Models for selectors that need scores. Several that are no controls are trainings of one method. */
  models?: readonly EvaluatedWith[];
  /** Each model meets only the tasks that it was not trained on. */
  heldOut?: boolean;
  /** Selector that differences refer to. Default: prompting, or the first where that is not among them. */
  baseline?: string;
  /** Default: unseen-seeds where every model saw every task in training, else unseen-tasks. */
  estimand?: Estimand;
  /** Asked before each episode; true ends the evaluation there, and a later one goes on. */
  until?: () => boolean;
  /** Hears what each step cost. */
  onUsage?: (usage: readonly Usage[]) => void;
  /** How a margin `auto` is found. */
  validation?: ValidationOptions;
}

/** A model to evaluate with, and its part in the comparison. */
export interface EvaluatedWith extends OpenModel {
  /** Why this model should gain nothing; null for the method itself. */
  control: string | null;
  /** What sets it apart from the method's usual training; named in the label of its entries. */
  variant?: string;
  /** Folder of the model whose margins `auto` stands for where it has them. Default: chosen on validation seeds. */
  marginsOf?: string;
}

/** What an evaluation has found. */
export interface EvaluateSummary {
  /** Absolute path of the run. */
  run: string;
  /** null where episodes are missing: then no results are written. */
  results: Results | null;
  faults: PlanFault[];
  seconds: number;
}

interface Contestant {
  entry: EvaluatedEntry;
  method: Method;
  model: EvaluatedWith | null;
}

/**
 * Evaluates, or continues an evaluation.
 * @throws BOQ_USAGE, BOQ_TASK_UNKNOWN, BOQ_RUN_EXISTS, BOQ_BROWSER_NOT_FOUND, BOQ_FILE_WRITE, BOQ_ABORTED
 */
export async function evaluate(options: EvaluateOptions): Promise<EvaluateSummary> {
  const started = performance.now();
  return new Evaluation(options).play(started);
}

class Evaluation {
  readonly #options: EvaluateOptions;
  readonly #stage: Stage;
  readonly #validation: ValidationStage;
  readonly #specs: { text: string; spec: MethodSpec; isAuto: boolean }[];
  readonly #models: readonly EvaluatedWith[];
  readonly #baseline: string;

  constructor(options: EvaluateOptions) {
    this.#options = options;
    this.#stage = resolveStage(options);
    this.#models = options.models ?? [];
    this.#specs = [...new Set(options.selectors)].map((text) => parseEntry(text, options.vlm));
    const labels = this.#specs.map(({ text }) => text);
    this.#baseline = options.baseline ?? (labels.includes('prompting') ? 'prompting' : (labels[0] ?? ''));
    if (!labels.includes(this.#baseline)) {
      throw new BoqError(
        'BOQ_USAGE',
        `Expected the baseline "${this.#baseline}" among the selectors, got ${labels.join(', ') || 'none'}.`,
      );
    }
    const scoring = this.#specs.find(({ spec, isAuto }) => isAuto || this.#method(spec).needsScores);
    if (scoring && this.#models.length === 0) {
      throw new BoqError(
        'BOQ_USAGE',
        `The selector ${scoring.text} needs a trained model: give one with --model.`,
      );
    }
    const unknown = this.#models.find(({ missingData }) => missingData.length > 0);
    if (options.heldOut && unknown) {
      throw new BoqError(
        'BOQ_USAGE',
        `Expected to know which tasks ${unknown.path} was trained on, but ${unknown.missingData.join(', ')} is gone: ` +
          'train it again on data that is there, or evaluate without holding tasks out.',
      );
    }
    const isAuto = this.#specs.some((entry) => entry.isAuto);
    this.#validation = resolveValidation(this.#stage, options.validation ?? {}, isAuto);
  }

  async play(started: number): Promise<EvaluateSummary> {
    const { out, selectors, signal, until, onUsage, onProgress } = this.#options;
    const { tasks, seeds, repeats, grid } = this.#validation;
    const run = await FolderRun.create(
      out,
      await describeRun('evaluate', this.#stage, {
        selectors: [...selectors],
        models: this.#models.map(({ id, control }) => ({ id, control })),
        modelPaths: this.#models.map(({ path }) => path),
        baseline: this.#baseline,
        ...(this.#options.heldOut ? { heldOut: true } : {}),
        validation: { tasks, seeds: { ...seeds }, repeats, grid },
      }),
    );
    const { contestants, faults } = await withBrowser(this.#stage, async (source) => {
      const line = await this.#contestants(run, source);
      const missing = await runPlan({
        ...this.#stage,
        run,
        source,
        plan: this.#plan(line),
        ...(signal ? { signal } : {}),
        ...(until ? { until } : {}),
        ...(onUsage ? { onStep: ({ usage }: StepRecord) => onUsage(usage) } : {}),
        onProgress: (progress) => onProgress?.({ ...progress, stage: 'evaluate' }),
      });
      return { contestants: line, faults: missing };
    });
    const committed = await run.committed();
    const isComplete = this.#plan(contestants).every(({ key }) => committed.has(keyName(key)));
    const results = isComplete ? await this.#results(run, contestants) : null;
    return { run: run.folder, results, faults, seconds: (performance.now() - started) / 1000 };
  }

  #method(spec: MethodSpec): Method {
    return createMethod(spec, this.#options.vlm);
  }

  /** Every selector with every model it needs; margins left open are chosen here. */
  async #contestants(run: FolderRun, source: EpisodeSource): Promise<Contestant[]> {
    const contestants: Contestant[] = [];
    for (const { text, spec, isAuto } of this.#specs) {
      const plain = isAuto ? null : this.#method(spec);
      if (plain && !plain.needsScores) {
        const entry = { label: text, selector: plain.name, generation: 'none', chosenMargin: null };
        contestants.push({ entry, method: plain, model: null });
        continue;
      }
      for (const model of this.#models) {
        const chosenMargin = isAuto ? await this.#margin(run, source, model, spec) : null;
        const method = chosenMargin === null ? this.#method(spec) : methodWithMargin(spec, chosenMargin);
        const label = labelOf(text, model);
        const entry = { label, selector: method.name, generation: model.id, chosenMargin };
        contestants.push({ entry, method, model });
      }
    }
    return contestants;
  }

  async #margin(
    run: FolderRun,
    source: EpisodeSource,
    model: EvaluatedWith,
    spec: MethodSpec,
  ): Promise<number> {
    const { marginsOf } = model;
    const plain = methodWithMargin(spec, 0).name;
    const kept = marginsOf === undefined ? null : await keptMargin(marginsOf, plain);
    if (kept !== null) return kept;
    const { signal, onProgress } = this.#options;
    return validateMargin({
      stage: this.#stage,
      validation: this.#validation,
      spec,
      model,
      source,
      folder: join(run.folder, 'validation', model.id, methodAsPath(plain)),
      ...(signal ? { signal } : {}),
      ...(onProgress ? { onProgress } : {}),
    });
  }

  /** All contestants meet a task and seed one after the other, so that an interrupted run compares like with like. */
  #plan(contestants: readonly Contestant[]): PlannedEpisode[] {
    const columns = contestants.map(({ entry }) => episodeKeys(this.#stage, entry));
    const plan = new Map<string, PlannedEpisode>();
    for (let row = 0; row < (columns[0]?.length ?? 0); row++) {
      for (const [index, { method, model }] of contestants.entries()) {
        const key = columns[index]![row]!;
        if (!this.#meets(model, key.task)) continue;
        // A chosen margin of 0 is the plain rule: its episodes are played once and count for both.
        plan.set(keyName(key), { key, method, critic: model?.critic ?? null });
      }
    }
    return [...plan.values()];
  }

  #meets(model: EvaluatedWith | null, task: string): boolean {
    return !(this.#options.heldOut && model?.trainingTasks.includes(task));
  }

  async #results(run: FolderRun, contestants: readonly Contestant[]): Promise<Results> {
    const { benchmark, tasks, seeds, repeats, proposer, n } = this.#stage;
    const rows: ResultRow[] = [];
    for (const { entry, model } of contestants) {
      for (const key of episodeKeys(this.#stage, entry)) {
        if (!this.#meets(model, key.task)) continue;
        const record = await run.find(key);
        if (!record) continue;
        rows.push({
          selector: entry.label,
          task: key.task,
          seed: key.seed,
          repeat: key.repeat,
          training: model?.id ?? '',
          success: record.reward > 0,
          rawReward: record.rawReward,
          steps: record.steps,
          outcome: record.outcome,
          policy: key.policy,
          attempt: join('attempts', record.attempt),
          costs: record.costs ?? null,
        });
      }
    }
    const estimand = this.#options.estimand ?? this.#estimand();
    const results: Results = {
      version: 1,
      benchmark: benchmark.name,
      tasks,
      seeds,
      repeats,
      policy: proposer.name,
      n,
      models: this.#models.map(({ path, id, trainingTasks, control }) => ({
        path,
        id,
        trainingTasks,
        control,
      })),
      entries: contestants.map(({ entry }) => entry),
      estimand,
      baseline: this.#baseline,
      selectors: summarizeSelectors(rows, { estimand, baseline: this.#baseline, seed: this.#stage.seed }),
    };
    try {
      await writeFile(join(run.folder, 'results.csv'), resultsCsv(rows));
      await writeFile(join(run.folder, 'results.json'), `${JSON.stringify(results, null, 2)}\n`);
    } catch (error) {
      throw writeFault(join(run.folder, 'results.json'), error);
    }
    return results;
  }

  #estimand(): Estimand {
    if (this.#options.heldOut) return 'unseen-tasks';
    const methods = this.#models.filter(({ control }) => control === null);
    const seen = methods.every(({ trainingTasks }) =>
      this.#stage.tasks.every((task) => trainingTasks.includes(task)),
    );
    return seen ? 'unseen-seeds' : 'unseen-tasks';
  }
}

function labelOf(text: string, { variant, control }: EvaluatedWith): string {
  const named = variant === undefined ? text : `${text}, ${variant}`;
  return control === null ? named : `${named} (${control})`;
}

function parseEntry(
  text: string,
  vlm: EvaluateOptions['vlm'],
): { text: string; spec: MethodSpec; isAuto: boolean } {
  const spec = parseMethodSpec(text);
  const isAuto = isMarginOpen(spec);
  return { text: isAuto ? text : createMethod(spec, vlm).name, spec, isAuto };
}
