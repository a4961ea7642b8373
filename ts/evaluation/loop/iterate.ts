/**
 * The paper's loop (A.2): explore, train, then cycles of exploiting runs, each followed by training on everything
 * collected so far. One folder holds it all:
 *
 *     loop.json       what was asked for, written first, never changed
 *     journal.jsonl   what has happened
 *     runs/g0-1 ...   episodes and their embeddings; g0 explores, g1 exploits what g0 taught
 *     models/g0 ...   one Q-function a generation; models/best is a copy of the best by validation
 *     validation/     the episodes that the learning curve is made of
 *
 * Every stage is resumable by itself and the journal says which are done, so the same call goes on from any point.
 */
import { mkdir } from 'node:fs/promises';
import { basename, join, resolve } from 'node:path';
import type { Price } from '../../agent/budget.js';
import { methodWithMargin, parseMethodSpec } from '../../agent/methods/registry.js';
import { BoqError } from '../../core/errors.js';
import { acquireLock } from '../../core/lock.js';
import { writeFault } from '../../store/publish.js';
import type { PlanFault } from '../runner.js';
import { LoopBudget, type LoopLimits } from './budget.js';
import { uncertainTasks } from './curriculum.js';
import { bestOf, type CurvePoint, learningCurve } from './curve.js';
import { Journal, lastEvent, spentBefore } from './journal.js';
import { type LoopPlan, requireSamePlan, requireSensible, seedsBetweenRuns } from './plan.js';
import type { LoopRun, LoopStages, Tell } from './types.js';

/** How far the loop is: the current stage, and all of it. */
export interface LoopProgress {
  /** What is being done, e.g. 'cycle 2: play g2-1'. */
  stage: string;
  done: number;
  total: number;
  note: string;
  /** Episodes of the whole loop, validation included. */
  overall: { done: number; total: number };
}

/** A loop, where it lies, and what it may use. */
export interface IterateOptions {
  plan: LoopPlan;
  /** The loop's folder, to begin or to continue. */
  out: string;
  budget?: LoopLimits;
  /** Prices beside the usual ones, by model. */
  prices?: Readonly<Record<string, Price>>;
  signal?: AbortSignal;
  onProgress?: (progress: LoopProgress) => void;
  /** After each training that was measured; the report is written anew here. */
  onPoint?: (curve: readonly CurvePoint[]) => Promise<void> | void;
}

/** What a loop has led to so far. */
export interface IterateResult {
  /** Absolute path of the loop's folder. */
  out: string;
  curve: CurvePoint[];
  /** Paths of models; null before the first training. */
  best: string | null;
  last: string | null;
  /** Why the loop ended before its last cycle; null where it did not. */
  endedBy: string | null;
  faults: PlanFault[];
}

/**
 * Runs the loop, or what is left of it. More cycles, another budget, other workers may be asked for when going on.
 * @throws BOQ_RUN_EXISTS where the folder holds a loop of another plan; BOQ_USAGE; BOQ_BUSY; those of the stages
 */
export async function runLoop(options: IterateOptions, stages: LoopStages): Promise<IterateResult> {
  const out = resolve(options.out);
  requireSensible(options.plan);
  try {
    await mkdir(join(out, 'models'), { recursive: true });
  } catch (error) {
    throw writeFault(out, error);
  }
  const release = await acquireLock(join(out, 'lock'), `the loop in ${out}`);
  try {
    await requireSamePlan(out, options.plan);
    await using journal = await Journal.open(join(out, 'journal.jsonl'));
    return await new Loop({ ...options, out }, stages, journal).play();
  } finally {
    await release();
  }
}

class Loop {
  readonly #options: IterateOptions;
  readonly #plan: LoopPlan;
  readonly #stages: LoopStages;
  readonly #journal: Journal;
  readonly #budget: LoopBudget;

  constructor(options: IterateOptions, stages: LoopStages, journal: Journal) {
    this.#options = options;
    this.#plan = options.plan;
    this.#stages = stages;
    this.#journal = journal;
    const { budget = {}, prices } = options;
    this.#budget = new LoopBudget(budget, spentBefore(journal.events), prices ? { prices } : {});
  }

  async play(): Promise<IterateResult> {
    await this.#journal.append({ event: 'sitting' });
    await this.#validate(-1, 0);
    let endedBy: string | null = null;
    // Once the budget is spent no run begins; what was collected is still trained on and measured.
    for (let generation = 0; generation <= this.#plan.cycles; generation++) {
      const { faults, ended } = await this.#collectAll(generation);
      if (faults.length > 0) return this.#result(faults, null);
      endedBy ??= ended;
      await this.#learn(generation);
    }
    await this.#keepBest();
    await this.#journal.append({ event: 'finished', reason: endedBy ?? 'all cycles are done' });
    return this.#result([], endedBy);
  }

  /** The runs of a generation, until the budget is spent. `ended`: why some are missing. */
  async #collectAll(generation: number): Promise<{ faults: PlanFault[]; ended: string | null }> {
    for (const run of this.#runs(generation)) {
      if (this.#collected(run.path)?.complete) continue;
      this.#stopIfAsked();
      const before = this.#spent();
      if (before !== null) return { faults: [], ended: before };
      const faults = await this.#collect(run);
      if (faults.length > 0) return { faults, ended: null };
      if (!this.#collected(run.path)?.complete) return { faults: [], ended: this.#spent() };
    }
    return { faults: [], ended: null };
  }

  async #collect(run: LoopRun): Promise<PlanFault[]> {
    const name = this.#relative(run.path);
    const tell = this.#tell(`${title(run.generation)}: play ${basename(name)}`);
    let told = performance.now();
    const heartbeat: Tell = (progress) => {
      tell(progress);
      // Once a minute is often enough to know how long a sitting that was killed had lasted.
      if (performance.now() - told < 60_000) return;
      told = performance.now();
      // A fault of the disk is met again, and thrown, by the event that follows.
      this.#journal.append({ event: 'playing', run: name, episodes: progress.done }).catch(() => undefined);
    };
    const margin = run.generation > 0 ? (this.#validated(run.generation - 1)?.margin ?? null) : null;
    const { faults, ...facts } = await this.#stages.collect(withMargin(run, margin), this.#budget, heartbeat);
    if (faults.length > 0) return faults;
    await this.#journal.append({ event: 'collected', run: name, generation: run.generation, ...facts });
    return [];
  }

  /** Embeds, trains on everything up to this generation, and validates; nothing where no episodes were added. */
  async #learn(generation: number): Promise<void> {
    const { plan, out } = this.#options;
    const data = this.#data(generation);
    const episodes = total(data);
    if (episodes === total(this.#data(generation - 1))) return;
    const known = lastEvent(this.#journal.events, 'trained', (entry) => entry.generation === generation);
    if (known?.episodes !== episodes) {
      const runs = data.map(({ run }) => join(out, run));
      this.#stopIfAsked();
      await this.#stages.embed(runs, this.#tell(`${title(generation)}: embed`));
      this.#stopIfAsked();
      const { transitions, seconds } = await this.#stages.train(
        {
          runs,
          episodes,
          out: this.#model(generation),
          startFrom: plan.warmStart && generation > 0 ? this.#model(generation - 1) : null,
          seed: plan.seed + generation,
        },
        this.#tell(`${title(generation)}: train`),
      );
      await this.#journal.append({ event: 'trained', generation, episodes, transitions, seconds });
    }
    await this.#validate(generation, episodes);
  }

  async #validate(generation: number, trained: number): Promise<void> {
    const known = lastEvent(
      this.#journal.events,
      'validated',
      (entry) => entry.generation === generation && entry.trained === trained,
    );
    if (known) return;
    this.#stopIfAsked();
    const isPolicy = generation < 0;
    // Episodes of a model that was trained anew are of another generation: a folder of their own.
    const name = isPolicy ? 'policy' : `g${generation}-${trained}`;
    const measured = await this.#stages.validate(
      isPolicy ? null : this.#model(generation),
      join(this.#options.out, 'validation', name),
      this.#tell(isPolicy ? 'validate the policy' : `${title(generation)}: validate`),
    );
    await this.#journal.append({ event: 'validated', generation, trained, ...measured });
    await this.#keepBest();
    await this.#options.onPoint?.(learningCurve(this.#journal.events));
  }

  async #keepBest(): Promise<void> {
    const best = bestOf(learningCurve(this.#journal.events));
    if (best !== null) await this.#stages.keep(this.#model(best.generation), this.#best);
  }

  #validated(generation: number) {
    return lastEvent(this.#journal.events, 'validated', (one) => one.generation === generation);
  }

  /** Where a cycle plays fewer tasks, it plays more seeds of each, so that all runs are about equally long. */
  #tasks(generation: number): { tasks: string[]; seeds: number } {
    const { tasks, seeds, curriculum } = this.#plan;
    const width = seeds.to - seeds.from + 1;
    if (generation === 0 || curriculum === 1) return { tasks, seeds: width };
    const chosen = uncertainTasks(tasks, this.#validated(generation - 1)?.startValues ?? {}, curriculum);
    return { tasks: chosen, seeds: Math.round((width * tasks.length) / chosen.length) };
  }

  /** The runs of one generation. Seeds go on from run to run through the whole loop. */
  #runs(generation: number): LoopRun[] {
    const { explore, exploit, n, seeds, sameSeeds, seed } = this.#plan;
    const { tasks, seeds: width } = this.#tasks(generation);
    const kind = generation === 0 ? explore : exploit;
    const before = generation === 0 ? 0 : explore.runs + (generation - 1) * exploit.runs;
    return Array.from({ length: kind.runs }, (_, index) => {
      const number = before + index;
      const from = seeds.from + (sameSeeds ? 0 : number * seedsBetweenRuns(this.#plan));
      return {
        path: join(this.#options.out, 'runs', `g${generation}-${index + 1}`),
        generation,
        tasks,
        selector: kind.selector,
        n: n[number % n.length]!,
        seeds: { from, to: from + width - 1 },
        seed: seed + number,
        model: generation === 0 ? null : this.#model(generation - 1),
      };
    });
  }

  /** Runs with episodes, up to and with a generation, as the journal has them. */
  #data(generation: number): { run: string; episodes: number }[] {
    return Array.from({ length: generation + 1 }, (_, index) => this.#runs(index))
      .flat()
      .map(({ path }) => ({ run: this.#relative(path), episodes: this.#collected(path)?.episodes ?? 0 }))
      .filter(({ episodes }) => episodes > 0);
  }

  #collected(path: string) {
    const run = this.#relative(path);
    return lastEvent(this.#journal.events, 'collected', (entry) => entry.run === run);
  }

  #spent(): string | null {
    this.#budget.setEpisodes(total(this.#data(this.#plan.cycles)));
    return this.#budget.exhausted();
  }

  #model(generation: number): string {
    return join(this.#options.out, 'models', `g${generation}`);
  }

  get #best(): string {
    return join(this.#options.out, 'models', 'best');
  }

  #relative(path: string): string {
    return path.slice(this.#options.out.length + 1);
  }

  #result(faults: PlanFault[], endedBy: string | null): IterateResult {
    const curve = learningCurve(this.#journal.events);
    const last = curve.at(-1)?.generation ?? -1;
    return {
      out: this.#options.out,
      curve,
      best: bestOf(curve) === null ? null : this.#best,
      last: last < 0 ? null : this.#model(last),
      endedBy,
      faults,
    };
  }

  #stopIfAsked(): void {
    if (!this.#options.signal?.aborted) return;
    throw new BoqError('BOQ_ABORTED', 'The loop was stopped: run the same command again to go on.', {
      cause: this.#options.signal.reason,
    });
  }

  #tell(stage: string): Tell {
    const { explore, exploit, cycles, tasks, seeds, repeats, validation } = this.#plan;
    const perRun = tasks.length * (seeds.to - seeds.from + 1) * repeats;
    const { from, to } = validation.seeds;
    const perPoint = validation.tasks.length * (to - from + 1) * validation.repeats;
    const all = (explore.runs + cycles * exploit.runs) * perRun + (cycles + 2) * perPoint;
    let settled = 0;
    for (const entry of this.#journal.events) {
      if (entry.event === 'collected' && entry.complete) settled += entry.episodes;
      if (entry.event === 'validated') settled += perPoint;
    }
    return ({ episodes = 0, ...progress }) =>
      this.#options.onProgress?.({
        stage,
        ...progress,
        overall: { done: Math.min(all, settled + episodes), total: all },
      });
  }
}

function total(data: readonly { episodes: number }[]): number {
  return data.reduce((sum, { episodes }) => sum + episodes, 0);
}

function title(generation: number): string {
  return generation === 0 ? 'explore' : `cycle ${generation}`;
}

function withMargin(run: LoopRun, margin: number | null): LoopRun {
  return margin === null
    ? run
    : { ...run, selector: methodWithMargin(parseMethodSpec(run.selector), margin).name };
}
