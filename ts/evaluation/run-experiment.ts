/**
 * A whole experiment: collect, embed, train, evaluate, for one policy and any number of independent trainings. Each
 * stage is the stage of that name with a folder of its own; what is complete is left as it is, so an experiment that
 * was interrupted goes on where it stopped.
 */
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import type { Proposer } from '../agent/types.js';
import { BoqError } from '../core/errors.js';
import type { Backup } from '../learning/backup.js';
import { embedRun } from '../learning/embed-run.js';
import { Embedder } from '../learning/embedder.js';
import { openRunSource } from '../learning/run-source.js';
import { train } from '../learning/train.js';
import type { NativeTrainConfig } from '../native/surface.js';
import { openRun } from '../store/run.js';
import { openBenchmark } from './benchmarks/registry.js';
import { collect } from './collect.js';
import { type EvaluatedWith, evaluate } from './evaluate.js';
import type { Experiment, Reference, Variant } from './experiment.js';
import { runLoop } from './loop/iterate.js';
import { type LoopPlan, paperLoop } from './loop/plan.js';
import { RealStages } from './loop/stages.js';
import { constantModel, ModelSet, trainedOn } from './models.js';
import { refitPolicy } from './refit.js';
import { type PlanFault, type PlanProgress, successNote } from './runner.js';
import type { PolicyChoice, SeedRange } from './stage.js';
import { explore } from './tree/explore.js';

/** Where an experiment lies and what it runs on; none of it changes its figures. */
export interface ExperimentOptions {
  /** Prefix of all folders: runs/NAME-..., models/NAME... */
  name: string;
  /** Where runs/ and models/ lie; default the current folder. */
  root?: string;
  /** Checkpoint folder of the embedder. */
  embedder: string;
  /** Episodes at a time. */
  workers?: number;
  device?: string;
  signal?: AbortSignal;
  onProgress?: (progress: ExperimentProgress) => void;
}

/** How far the current stage is. */
export interface ExperimentProgress {
  /** What is being done, e.g. 'collect demo-train'. Changes from stage to stage. */
  stage: string;
  done: number;
  total: number;
  note: string;
}

/** What an experiment leaves. */
export interface ExperimentResult {
  /** Folders of the evaluation runs, for a report. */
  runs: string[];
  /** Episodes that could not be played; the experiment then stopped early. */
  faults: PlanFault[];
}

/**
 * Runs an experiment, or what is left of it.
 * @throws those of the stages; BOQ_ABORTED
 */
export async function runExperiment(
  experiment: Experiment,
  options: ExperimentOptions,
): Promise<ExperimentResult> {
  const conductor = new Conductor(experiment, options);
  try {
    return { runs: await conductor.conduct(), faults: [] };
  } catch (error) {
    if (error instanceof MissingEpisodes) return { runs: [], faults: error.faults };
    throw error;
  }
}

/** Ends the experiment at the stage whose episodes are missing: later figures would rest on them. */
class MissingEpisodes extends Error {
  readonly faults: PlanFault[];

  constructor(faults: PlanFault[]) {
    super('episodes are missing');
    this.faults = faults;
  }
}

/** What one model is trained on. */
interface Episodes {
  /** Of its folders' names. */
  suffix: string;
  runs: string[];
  /** The model that a loop has trained on them already. */
  looped: string | null;
}

/** Folders of one training. */
interface Training {
  runs: string[];
  model: string;
  control: string;
  variants: string[];
}

class Conductor {
  readonly #experiment: Experiment;
  readonly #options: ExperimentOptions;

  constructor(experiment: Experiment, options: ExperimentOptions) {
    this.#experiment = experiment;
    this.#options = options;
  }

  async conduct(): Promise<string[]> {
    const { draws } = this.#experiment.training;
    const trainings: Training[] = [];
    for (const [index, draw] of draws.entries()) {
      const suffix = draws.length > 1 ? `-${index + 1}` : '';
      for (const episodes of await this.#episodes(suffix, draw)) {
        trainings.push(await this.#trainAll(episodes, draw.seed));
      }
    }
    return this.#evaluateAll(trainings);
  }

  /** Plays and embeds the episodes of one draw; one entry for each model that is trained on them. */
  async #episodes(suffix: string, { seed, seeds }: { seed: number; seeds: SeedRange }): Promise<Episodes[]> {
    const { training, references } = this.#experiment;
    const { tasks, folds, loop, sharedAs } = training;
    if (folds && loop)
      throw new BoqError('BOQ_USAGE', 'Expected folds of tasks or a loop over them, not both.');
    if (folds && references.some(({ refit }) => refit !== undefined)) {
      throw new BoqError(
        'BOQ_USAGE',
        'Expected no refitted policy beside folds of tasks: it would be measured on tasks that it was fitted to.',
      );
    }
    if (loop) {
      const { runs, model } = await this.#loop(loop, suffix, seed, seeds);
      for (const run of runs) await this.#embed(run);
      return [{ suffix, runs, looped: model }];
    }
    const sets = folds
      ? tasks.map((fold, index) => ({ set: [fold], name: `-fold-${index + 1}` }))
      : [{ set: tasks, name: '' }];
    const runs: string[] = [];
    for (const { set, name } of sets) {
      const run = this.#path('runs', `-train${suffix}${name}`, sharedAs);
      await this.#collect(run, set, seed, seeds);
      await this.#embed(run);
      runs.push(run);
    }
    if (!folds) return [{ suffix, runs, looped: null }];
    return sets.map(({ name }, left) => ({
      suffix: suffix + name,
      runs: runs.filter((_, index) => index !== left),
      looped: null,
    }));
  }

  async #trainAll({ suffix, runs, looped }: Episodes, seed: number): Promise<Training> {
    const { training, controls } = this.#experiment;
    const model = looped ?? this.#path('models', suffix, training.sharedAs);
    const control = this.#path('runs', `-shuffled${suffix}`);
    if (!looped) await this.#train(model, runs, { seed }, training.backup);
    if (controls.shuffled.length > 0)
      await this.#train(control, runs, { seed, shuffleRewards: true }, training.backup);
    const variants: string[] = [];
    for (const { name, config, backup } of this.#experiment.variants ?? []) {
      const folder = this.#path('models', `-${name}${suffix}`);
      await this.#train(folder, runs, { ...config, seed }, backup);
      variants.push(folder);
    }
    return { runs, model, control, variants };
  }

  async #evaluateAll(trainings: readonly Training[]): Promise<string[]> {
    const { questions, selectors, controls, references, policy, temperature } = this.#experiment;
    const { embedder, device } = this.#options;
    await using set = new ModelSet({ embedder, ...(device === undefined ? {} : { device }) });
    const models: EvaluatedWith[] = [];
    const shuffled: EvaluatedWith[] = [];
    for (const { model, control } of trainings) {
      models.push({ ...(await set.open(model)), control: null });
      if (controls.shuffled.length === 0) continue;
      // A control overrides as readily as the method that it is compared with: left to itself on validation seeds, a
      // worthless Q would choose never to override, and so gain nothing whatever it is worth.
      shuffled.push({ ...(await set.open(control)), control: 'shuffled rewards', marginsOf: model });
    }
    const variants: { variant: Variant; models: EvaluatedWith[] }[] = [];
    for (const [index, variant] of (this.#experiment.variants ?? []).entries()) {
      const own: EvaluatedWith[] = [];
      for (const training of trainings)
        own.push({ ...(await set.open(training.variants[index]!)), control: null, variant: variant.name });
      variants.push({ variant, models: own });
    }
    const constant = { ...constantModel(), control: 'constant' };
    const own: PolicyChoice = { policy, ...(temperature === undefined ? {} : { temperature }) };
    const runs: string[] = [];
    for (const question of questions) {
      const { part } = question;
      runs.push(await this.#evaluate(part, question, own, selectors, models));
      for (const [kind, chosen, control] of [
        ['shuffled', controls.shuffled, shuffled],
        ['constant', controls.constant, [constant]],
      ] as const) {
        if (chosen.length > 0)
          runs.push(await this.#evaluate(`${part}-${kind}`, question, own, chosen, control));
      }
      for (const one of variants) {
        const { name, selectors: chosen } = one.variant;
        runs.push(await this.#evaluate(`${part}-${name}`, question, own, chosen, one.models));
      }
      for (const [index, reference] of references.entries()) {
        const name = `${part}-reference${references.length > 1 ? `-${index + 1}` : ''}`;
        const asked = await this.#referencePolicy(reference, trainings[0]!.runs);
        runs.push(await this.#evaluate(name, question, asked, ['prompting'], []));
      }
    }
    return runs;
  }

  async #referencePolicy(
    { refit, ...choice }: Reference,
    runs: readonly string[],
  ): Promise<{ policy: string | Proposer; temperature?: number }> {
    if (refit === undefined) return choice;
    return { policy: await refitPolicy(await Promise.all(runs.map((run) => openRun(run))), refit) };
  }

  /** A loop of its own for one draw: its runs, and its last model, which as the variants knows all of them. */
  async #loop(
    loop: NonNullable<Experiment['training']['loop']>,
    suffix: string,
    seed: number,
    seeds: SeedRange,
  ): Promise<{ runs: string[]; model: string | null }> {
    const { training, benchmark, n, validation } = this.#experiment;
    const { explore, ...exploiting } = loop;
    const { embedder, workers, device, signal, onProgress } = this.#options;
    const resolve = (tasks: readonly string[]): string[] => openBenchmark(benchmark).resolveTasks(tasks);
    const plan: LoopPlan = {
      ...paperLoop,
      ...this.#collector,
      ...{ benchmark, n: [n], seeds, seed },
      ...exploiting,
      tasks: resolve(training.tasks),
      repeats: training.repeats,
      explore: { runs: explore.runs, selector: training.selector },
      config: { ...training.config },
      validation: { tasks: resolve(validation.tasks), seeds: validation.seeds, repeats: 1 },
    };
    const out = this.#path('loops', suffix, training.sharedAs);
    await using stages = new RealStages(plan, {
      embedder,
      ...(workers === undefined ? {} : { workers }),
      ...(device === undefined ? {} : { device }),
      ...(signal ? { signal } : {}),
    });
    const { last, faults } = await runLoop(
      {
        ...{ plan, out },
        ...(signal ? { signal } : {}),
        onProgress: ({ stage, done, total, note }) =>
          onProgress?.({ stage: `loop${suffix} ${stage}`, done, total, note }),
      },
      stages,
    );
    if (faults.length > 0) throw new MissingEpisodes(faults);
    const runs = (await readdir(join(out, 'runs'))).sort();
    return { runs: runs.map((run) => join(out, 'runs', run)), model: last };
  }

  get #collector(): PolicyChoice {
    const { training, policy, temperature } = this.#experiment;
    return training.policy ?? { policy, ...(temperature === undefined ? {} : { temperature }) };
  }

  async #collect(out: string, tasks: readonly string[], seed: number, seeds: SeedRange): Promise<void> {
    const { training, n } = this.#experiment;
    const benchmark = training.benchmark ?? this.#experiment.benchmark;
    if (training.tree) {
      const { faults } = await explore({
        ...{ benchmark, n, seed, seeds, out, tasks },
        ...this.#collector,
        shape: training.tree,
        ...this.#playing('explore', out),
      });
      if (faults.length > 0) throw new MissingEpisodes(faults);
      return;
    }
    const { faults } = await collect({
      ...{ benchmark, n, seed, seeds, out, tasks },
      ...this.#collector,
      repeats: training.repeats,
      selector: training.selector,
      ...this.#playing('collect', out),
    });
    if (faults.length > 0) throw new MissingEpisodes(faults);
  }

  async #embed(run: string): Promise<void> {
    const { embedder: path, device, signal } = this.#options;
    await using embedder = await Embedder.load({ path, ...(device === undefined ? {} : { device }) });
    await embedRun(await openRunSource(run), embedder, {
      ...(signal ? { signal } : {}),
      onProgress: ({ steps, totalSteps, embeddedPerSecond }) =>
        this.#tell('embed', run, steps, totalSteps, `${Math.round(embeddedPerSecond)} rows/s`),
    });
  }

  async #train(
    out: string,
    data: readonly string[],
    config: NativeTrainConfig,
    backup?: Backup,
  ): Promise<void> {
    if (await trainedOn(out)) return;
    const { signal, device } = this.#options;
    const { summary } = await train({
      data,
      out,
      config: { ...this.#experiment.training.config, ...config },
      resume: true,
      ...(backup === undefined ? {} : { backup }),
      ...(device === undefined ? {} : { device }),
      ...(signal ? { signal } : {}),
      onProgress: ({ step, steps }) => this.#tell('train', out, step, steps, ''),
    });
    if (summary.stopped) throw new BoqError('BOQ_ABORTED', `Training of ${out} was stopped; it can go on.`);
  }

  async #evaluate(
    part: string,
    { tasks, seeds }: { tasks: readonly string[]; seeds: SeedRange },
    policy: { policy: string | Proposer; temperature?: number },
    selectors: readonly string[],
    models: readonly EvaluatedWith[],
  ): Promise<string> {
    const { benchmark, n, training, validation } = this.#experiment;
    const out = this.#path('runs', `-${part}`);
    const { run, faults } = await evaluate({
      ...{ benchmark, n, tasks, seeds, selectors, models, validation, out },
      heldOut: training.folds ?? false,
      ...policy,
      ...this.#playing('evaluate', out),
    });
    if (faults.length > 0) throw new MissingEpisodes(faults);
    return run;
  }

  #path(kind: 'runs' | 'models' | 'loops', suffix: string, name = this.#options.name): string {
    return join(this.#options.root ?? '.', kind, `${name}${suffix}`);
  }

  #playing(stage: string, out: string) {
    const { workers, signal } = this.#options;
    return {
      ...(workers === undefined ? {} : { workers }),
      ...(signal ? { signal } : {}),
      onProgress: (progress: PlanProgress & { stage: string }) => {
        const { done, total } = progress;
        this.#tell(progress.stage || stage, out, done, total, successNote(progress));
      },
    };
  }

  #tell(verb: string, folder: string, done: number, total: number, note: string): void {
    const name = folder.split('/').at(-1) ?? folder;
    this.#options.onProgress?.({ stage: `${verb} ${name}`, done, total, note });
  }
}
