/**
 * Plays a plan of episodes, several at a time, into a run: those that are committed already are left out, faults of
 * browser, endpoint or disk are tried again, and nothing about an episode depends on how many run beside it.
 */
import { setMaxListeners } from 'node:events';
import type { EpisodeLimits } from '../agent/episode.js';
import { Meter } from '../agent/methods/meter.js';
import type { Method } from '../agent/methods/method.js';
import type { Critic, Episode, Localizer, Proposer } from '../agent/types.js';
import { BoqError, type BoqErrorCode, isBoqError } from '../core/errors.js';
import { type RandomSource, randomSource } from '../core/random.js';
import { keyName } from '../store/keys.js';
import type { RunStore } from '../store/run.js';
import type { EpisodeKey, EpisodeRecord, StepRecord } from '../store/types.js';

/** One episode to play. `key.selector` is the method's name. */
export interface PlannedEpisode {
  key: EpisodeKey;
  method: Method;
  critic: Critic | null;
}

/**
 * Where episodes come from: opens one task instance, lends it for the time of `work`, and cleans up. `reset` begins the
 * same instance anew, in place of the one before.
 */
export interface EpisodeSource {
  /** @param fresh true after a fault: nothing of an earlier session may be used */
  use<T>(
    task: string,
    seed: number,
    work: (episode: Episode, reset: () => Promise<Episode>) => Promise<T>,
    options: { fresh: boolean; signal: AbortSignal },
  ): Promise<T>;
}

export interface RunPlanOptions {
  run: RunStore;
  plan: readonly PlannedEpisode[];
  source: EpisodeSource;
  proposer: Proposer;
  localizer: Localizer;
  n: number;
  limits: EpisodeLimits;
  /** Episodes at a time. */
  workers: number;
  /** How often a faulty episode is tried again. */
  retries: number;
  /** Pause before the first retry; doubles with each. Default 500. */
  retryMs?: number;
  signal?: AbortSignal;
  /** Asked before each episode: true begins no further one, and those that run are played to their end. */
  until?: () => boolean;
  onStep?: (record: StepRecord) => void;
  onProgress?: (progress: PlanProgress) => void;
}

/** How far a plan of episodes is. */
export interface PlanProgress {
  /** Episodes committed, those of earlier sittings included. */
  done: number;
  total: number;
  /** Of those committed in this sitting. */
  successes: number;
  played: number;
  /** Episodes given up after their retries. */
  faults: number;
}

/** The share of successes in this sitting, in words, for a progress bar; '' before the first episode. */
export function successNote({ played, successes }: Pick<PlanProgress, 'played' | 'successes'>): string {
  return played > 0 ? `success ${((100 * successes) / played).toFixed(1)} %` : '';
}

/** An episode that was given up, and why. */
export interface PlanFault {
  key: EpisodeKey;
  error: unknown;
}

/** Faults that no retry can mend: the whole plan stops at once. */
const hopeless: ReadonlySet<BoqErrorCode> = new Set([
  'BOQ_USAGE',
  'BOQ_INVALID_ARGUMENT',
  'BOQ_TASK_UNKNOWN',
  'BOQ_FILE_NOT_FOUND',
  'BOQ_FILE_WRITE',
  'BOQ_RUN_INVALID',
  'BOQ_BROWSER_NOT_FOUND',
  'BOQ_FINGERPRINT_MISMATCH',
  'BOQ_SHAPE_MISMATCH',
  'BOQ_NOT_FINITE',
  'BOQ_DISPOSED',
  'BOQ_VLM_ENDPOINT',
  'BOQ_VLM_KEY',
  'BOQ_VLM_QUOTA',
  'BOQ_VLM_MODEL',
  'BOQ_VLM_VISION',
  'BOQ_VLM_TLS',
]);

/** This many episodes given up one after the other, none played in between: the fault lies deeper. */
const faultsInARow = 5;

/**
 * Draws of an episode, by step and purpose. Neither selector nor model is part of the key, so that selectors meet
 * the same candidates as long as they choose alike.
 */
export function episodeRandom(runSeed: number, { task, seed, repeat }: EpisodeKey) {
  return (step: number, purpose: string): RandomSource =>
    randomSource([runSeed, task, seed, repeat, step, purpose]);
}

/**
 * Plays what is left of the plan.
 * @returns the episodes given up; empty where all are committed, or where `until` ended the plan early
 * @throws BOQ_ABORTED after the running episodes were left; faults that no retry can mend
 */
export async function runPlan(options: RunPlanOptions): Promise<PlanFault[]> {
  return new PlanRun(options).play();
}

class PlanRun {
  readonly #options: RunPlanOptions;
  readonly #stop = new AbortController();
  readonly #progress: PlanProgress;
  readonly #faults: PlanFault[] = [];
  #faultsInARow = 0;
  #fatal: unknown = null;

  constructor(options: RunPlanOptions) {
    this.#options = options;
    this.#progress = { done: 0, total: options.plan.length, successes: 0, played: 0, faults: 0 };
  }

  async play(): Promise<PlanFault[]> {
    const { plan, run, workers, signal } = this.#options;
    const stop = (): void => this.#stop.abort(signal?.reason);
    // Every episode at work listens, and what it waits for; more than Node's ten are no leak.
    setMaxListeners(0, this.#stop.signal, ...(signal ? [signal] : []));
    signal?.addEventListener('abort', stop);
    if (signal?.aborted) stop();
    try {
      const committed = await run.committed();
      const left = plan.filter(({ key }) => !committed.has(keyName(key)));
      this.#progress.done = plan.length - left.length;
      this.#report();
      const queue = left.values();
      const hands = Math.min(workers, left.length);
      await Promise.all(Array.from({ length: hands }, () => this.#work(queue)));
    } finally {
      signal?.removeEventListener('abort', stop);
    }
    if (this.#fatal) throw this.#fatal;
    if (signal?.aborted) {
      throw new BoqError(
        'BOQ_ABORTED',
        `Stopped after ${this.#progress.done} of ${plan.length} episodes: run the same command again to go on.`,
        { cause: signal.reason },
      );
    }
    return this.#faults;
  }

  async #work(queue: IterableIterator<PlannedEpisode>): Promise<void> {
    for (const planned of queue) {
      if (this.#stop.signal.aborted || this.#options.until?.()) return;
      try {
        const record = await this.#attempts(planned);
        this.#faultsInARow = 0;
        this.#progress.done++;
        this.#progress.played++;
        this.#progress.successes += record.reward > 0 ? 1 : 0;
      } catch (error) {
        if (this.#stop.signal.aborted) return;
        this.#giveUp(planned.key, error);
      }
      this.#report();
    }
  }

  #giveUp(key: EpisodeKey, error: unknown): void {
    this.#faults.push({ key, error });
    this.#progress.faults++;
    this.#faultsInARow++;
    const isHopeless = isBoqError(error) && hopeless.has(error.code);
    if (!isHopeless && this.#faultsInARow < faultsInARow) return;
    this.#fatal = error;
    this.#stop.abort(error);
  }

  async #attempts(planned: PlannedEpisode): Promise<EpisodeRecord> {
    const { retries, retryMs = 500 } = this.#options;
    for (let attempt = 0; ; attempt++) {
      try {
        return await this.#attempt(planned, attempt > 0);
      } catch (error) {
        const isHopeless = isBoqError(error) && hopeless.has(error.code);
        if (attempt >= retries || isHopeless || this.#stop.signal.aborted) throw error;
        await pause(retryMs * 2 ** attempt, this.#stop.signal);
      }
    }
  }

  #attempt({ key, method, critic }: PlannedEpisode, fresh: boolean): Promise<EpisodeRecord> {
    const { run, source, proposer, localizer, n, limits, onStep } = this.#options;
    const { signal } = this.#stop;
    const play = async (episode: Episode, reset: () => Promise<Episode>): Promise<EpisodeRecord> => {
      const meter = new Meter();
      const writer = await run.begin(key, { instruction: episode.instruction, startUrl: episode.startUrl });
      try {
        const end = await method.play({
          episode: meter.episode(episode),
          reset: async () => meter.episode(await reset()),
          proposer: meter.proposer(proposer),
          localizer,
          critic: critic && meter.critic(critic),
          n,
          limits,
          random: episodeRandom(run.record.seed, key),
          recorder: writer,
          signal,
          ...(onStep ? { afterStep: async (record) => onStep(record) } : {}),
        });
        const { record, counts } = await writer.commit({ ...end, costs: meter.costs });
        return counts ? record : ((await run.find(key)) ?? record);
      } finally {
        await writer.abandon();
      }
    };
    return source.use(key.task, key.seed, play, { fresh, signal });
  }

  #report(): void {
    this.#options.onProgress?.({ ...this.#progress });
  }
}

/** Waits, at most until the signal. */
function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const end = (): void => {
      clearTimeout(timer);
      signal.removeEventListener('abort', end);
      resolve();
    };
    const timer = setTimeout(end, ms);
    signal.addEventListener('abort', end);
    if (signal.aborted) end();
  });
}
