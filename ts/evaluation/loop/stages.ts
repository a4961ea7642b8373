/** The stages behind the loop: collect, embed, train, validate, as the commands of those names do them. */
import { cp, rename, rm } from 'node:fs/promises';
import { basename, join } from 'node:path';
import type { Price } from '../../agent/budget.js';
import { isMarginOpen, methodWithMargin, parseMethodSpec } from '../../agent/methods/registry.js';
import type { VlmChoice } from '../../agent/policy/registry.js';
import { BoqError, isBoqError } from '../../core/errors.js';
import type { ContentCache } from '../../learning/content-cache.js';
import { embedRun } from '../../learning/embed-run.js';
import { Embedder } from '../../learning/embedder.js';
import { hashFile } from '../../learning/profile.js';
import { openRunSource } from '../../learning/run-source.js';
import { train } from '../../learning/train.js';
import { FolderRun } from '../../store/run.js';
import { type CollectOptions, type CollectSummary, collect } from '../collect.js';
import { keptRecord } from '../margin.js';
import { ModelSet, type OpenModel, trainedOn } from '../models.js';
import { type PlanProgress, successNote } from '../runner.js';
import { meanWithError } from '../statistics.js';
import { chooseModelMargin } from '../validation.js';
import type { LoopBudget } from './budget.js';
import { costOf } from './cost.js';
import { readStartValues } from './curriculum.js';
import type { LoopPlan } from './plan.js';
import type { CollectOutcome, LoopRun, LoopStages, LoopTraining, Tell, Validation } from './types.js';

export interface RealStagesOptions {
  /** Checkpoint folder of the embedder. */
  embedder: string;
  /** Episodes at a time. */
  workers?: number;
  device?: string;
  /**
   * What runs embed while they choose, the embed stage after them finds here, and the next validation too; stays the
   * caller's to close.
   */
  cache?: ContentCache;
  /** Where the models are, for policies and localizers that ask one. */
  vlm?: VlmChoice;
  /** Prices beside the usual ones, by model. */
  prices?: Readonly<Record<string, Price>>;
  signal?: AbortSignal;
}

/** Stages of one loop; models stay open from a validation to the runs that use them. */
export class RealStages implements LoopStages, AsyncDisposable {
  readonly #plan: LoopPlan;
  readonly #options: RealStagesOptions;
  #open: { path: string; set: ModelSet; model: OpenModel } | null = null;

  constructor(plan: LoopPlan, options: RealStagesOptions) {
    this.#plan = plan;
    this.#options = options;
  }

  async collect(run: LoopRun, budget: LoopBudget, tell: Tell): Promise<CollectOutcome> {
    const { repeats } = this.#plan;
    budget.addUsd(await this.#cost(run.path));
    // So many may still begin: a limit on episodes is kept exactly, however many play at a time.
    let left = budget.episodesLeft - (await committed(run.path));
    const summary = await this.#play(
      {
        ...{ tasks: run.tasks, repeats, n: run.n, seeds: run.seeds, seed: run.seed, out: run.path },
        selector: run.selector,
        until: () => left-- <= 0 || budget.exhausted() !== null,
        onUsage: (usage) => budget.add(usage),
      },
      run.model,
      tell,
    );
    const { episodes, successes, steps, complete, faults } = summary;
    return { episodes, successes, steps, complete, faults, usd: await this.#cost(run.path) };
  }

  async embed(runs: readonly string[], tell: Tell): Promise<void> {
    await this.#close();
    const { embedder: path, signal } = this.#options;
    await using embedder = await Embedder.load({ path, ...this.#embedding });
    for (const run of runs) {
      await embedRun(await openRunSource(run), embedder, {
        ...(signal ? { signal } : {}),
        onProgress: ({ steps, totalSteps, embedded, cached }) =>
          tell({
            done: steps,
            total: totalSteps,
            note: `${basename(run)}, ${embedded} rows embedded, ${cached} cached`,
          }),
      });
    }
  }

  async train(request: LoopTraining, tell: Tell): Promise<{ transitions: number; seconds: number }> {
    await this.#close();
    const found = await trainedOn(request.out);
    if (found?.episodes === request.episodes) return { transitions: found.transitions, seconds: 0 };
    try {
      return await this.#train(request, true, tell);
    } catch (error) {
      // Stopped on other data than there is now: what was learned then is of no use.
      if (!isBoqError(error, 'BOQ_CHECKPOINT_INVALID')) throw error;
      return this.#train(request, false, tell);
    }
  }

  async #train(
    { runs, out, startFrom, seed }: LoopTraining,
    resume: boolean,
    tell: Tell,
  ): Promise<{ transitions: number; seconds: number }> {
    const { signal, device } = this.#options;
    const { preset, config } = this.#plan;
    const { summary, plan } = await train({
      ...{ data: runs, out, resume, preset },
      ...(startFrom === null ? {} : { startFrom }),
      config: { seed, ...config },
      ...(device === undefined ? {} : { device }),
      ...(signal ? { signal } : {}),
      onProgress: ({ step, steps }) => tell({ done: step, total: steps, note: '' }),
    });
    if (summary.stopped) throw new BoqError('BOQ_ABORTED', `Training of ${out} was stopped; it can go on.`);
    return { transitions: plan.data.transitions, seconds: summary.seconds };
  }

  async validate(path: string | null, out: string, tell: Tell): Promise<Validation> {
    const { validation, exploit, n, seed } = this.#plan;
    const { tasks, seeds, repeats } = validation;
    const count = Math.max(...n);
    const spec = path === null ? 'prompting' : exploit.selector;
    if (path !== null && isMarginOpen(parseMethodSpec(spec)))
      return this.#validateMargin(path, out, count, tell);
    const { episodes, successRate, faults } = await this.#play(
      { tasks, seeds, repeats, n: count, seed, out, selector: spec },
      path,
      tell,
    );
    // A point of the curve without some of its episodes would be another quantity.
    if (faults[0]) throw faults[0].error;
    const standardError = meanWithError(outcomes(episodes, successRate)).standardError;
    return { episodes, successRate, standardError, margin: null, ...(await this.#lookedAt(out)) };
  }

  /** The sweep that chooses the margin has played what the curve needs. */
  async #validateMargin(path: string, out: string, n: number, tell: Tell): Promise<Validation> {
    const { validation, exploit, seed } = this.#plan;
    const { model } = await this.#model(path);
    const margin = await chooseModelMargin({
      ...this.#playing(tell),
      ...{ tasks: validation.tasks, n, seed, model, out, method: exploit.selector },
      validation: { seeds: validation.seeds, repeats: validation.repeats },
    });
    const plain = methodWithMargin(parseMethodSpec(exploit.selector), 0).name;
    const record = await keptRecord(path, plain);
    const row = record?.rows.find((one) => one.margin === margin);
    if (!record || !row)
      throw new BoqError('BOQ_INTERNAL', `Expected the sweep of ${path} to hold ${margin}.`);
    const { from, to } = validation.seeds;
    const episodes = record.conditions.tasks.length * (to - from + 1) * validation.repeats;
    const { successRate } = row;
    const standardError = meanWithError(outcomes(episodes, successRate)).standardError;
    return { episodes, successRate, standardError, margin, ...(await this.#lookedAt(out)) };
  }

  /** What the validation episodes cost, and what the model expected of them. */
  async #lookedAt(out: string): Promise<Pick<Validation, 'usd' | 'startValues'>> {
    const usd = await this.#cost(out);
    if (this.#plan.curriculum === 1) return { usd, startValues: {} };
    return { usd, startValues: await readStartValues((await FolderRun.open(out)).episodes()) };
  }

  async keep(from: string, to: string): Promise<void> {
    const [wanted, found] = await Promise.all([weightsOf(from), weightsOf(to)]);
    if (wanted !== null && wanted === found) return;
    const part = `${to}.part`;
    await rm(part, { recursive: true, force: true });
    await cp(from, part, { recursive: true });
    await rm(to, { recursive: true, force: true });
    await rename(part, to);
  }

  async #play(
    options: Omit<CollectOptions, 'benchmark'>,
    path: string | null,
    tell: Tell,
  ): Promise<CollectSummary> {
    const model = path === null ? null : (await this.#model(path)).model;
    return collect({
      ...this.#playing(tell),
      ...options,
      ...(model ? { critic: { critic: model.critic, generation: model.id } } : {}),
    });
  }

  #playing(tell: Tell) {
    const { benchmark, policy, localizer, temperature, maxSteps } = this.#plan;
    const { workers, vlm, signal } = this.#options;
    return {
      ...{ benchmark, policy, localizer },
      ...(vlm ? { vlm } : {}),
      ...(temperature === undefined ? {} : { temperature }),
      ...(maxSteps === null ? {} : { maxSteps }),
      ...(workers === undefined ? {} : { workers }),
      ...(signal ? { signal } : {}),
      onProgress: (progress: PlanProgress) => {
        const { done, total } = progress;
        tell({ done, total, episodes: done, note: successNote(progress) });
      },
    };
  }

  async #model(path: string): Promise<{ model: OpenModel }> {
    if (this.#open?.path === path) return this.#open;
    await this.#close();
    const { embedder } = this.#options;
    const set = new ModelSet({ embedder, ...this.#embedding });
    try {
      this.#open = { path, set, model: await set.open(path) };
      return this.#open;
    } catch (error) {
      await set.dispose();
      throw error;
    }
  }

  get #embedding(): Pick<RealStagesOptions, 'device' | 'cache'> {
    const { device, cache } = this.#options;
    return { ...(device === undefined ? {} : { device }), ...(cache === undefined ? {} : { cache }) };
  }

  #cost(run: string): Promise<number> {
    return costOf(run, this.#options.prices);
  }

  async #close(): Promise<void> {
    await this.#open?.set.dispose();
    this.#open = null;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#close();
  }
}

function outcomes(episodes: number, rate: number): number[] {
  const successes = Math.round(episodes * rate);
  return Array.from({ length: episodes }, (_, index) => Number(index < successes));
}

async function committed(path: string): Promise<number> {
  return FolderRun.open(path).then(
    async (run) => (await run.committed()).size,
    () => 0,
  );
}

async function weightsOf(model: string): Promise<string | null> {
  return hashFile(join(model, 'model.safetensors')).catch(() => null);
}
