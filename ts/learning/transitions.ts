/**
 * Episodes as the transitions that IQL trains on: which rows each transition has, its reward and its end. Pure
 * bookkeeping over row numbers; no vectors pass through here.
 */
import { hashUniform } from '../core/random.js';
import { bytesView, type Tensor } from '../core/safetensors.js';
import type { EpisodeRecord, Outcome } from '../store/types.js';

/** The rows of one step that was taken. */
export interface StepRows {
  state: number;
  /** Rows of all candidates, in their order. */
  candidates: number[];
  /** Index of the executed one. */
  chosen: number;
  /** The selector drew at random instead of following its own preference. */
  explored: boolean;
}

/** An episode that a limit cut off: nothing is known about what would have followed. */
const limits: readonly Outcome[] = ['step-limit', 'time-limit', 'budget'];

/** Collects episodes in order, then gives the arrays of docs/data-formats.md. */
export class TransitionIndex {
  readonly #columns = {
    state: [] as number[],
    action: [] as number[],
    task: [] as number[],
    next_state: [] as number[],
    reward: [] as number[],
    done: [] as number[],
    timeout: [] as number[],
    episode: [] as number[],
    step: [] as number[],
    chosen: [] as number[],
    explored: [] as number[],
    candidate_offset: [0],
    candidate_action: [] as number[],
    episode_task: [] as number[],
    episode_success: [] as number[],
    episode_first: [] as number[],
    episode_steps: [] as number[],
    episode_split: [] as number[],
  };
  readonly #tasks = new Map<string, number>();

  /**
   * Adds one episode with at least one step. The reward belongs to its last action; every other one has 0.
   *
   * @param afterLimit row of the state in which a limit ended the episode, else -1.
   */
  add(record: EpisodeRecord, task: number, steps: readonly StepRows[], afterLimit: number): void {
    const c = this.#columns;
    const episode = c.episode_task.length;
    const { key } = record;
    c.episode_task.push(this.#taskIndex(key.task));
    c.episode_success.push(record.outcome === 'success' ? 1 : 0);
    c.episode_first.push(c.state.length);
    c.episode_steps.push(steps.length);
    // Every episode of one task and seed falls on the same side, whoever played it.
    c.episode_split.push(hashUniform(['split', key.benchmark, key.task, key.seed]));
    steps.forEach((step, index) => {
      const isLast = index === steps.length - 1;
      const isTimeout = isLast && limits.includes(record.outcome);
      c.state.push(step.state);
      c.action.push(step.candidates[step.chosen] as number);
      c.task.push(task);
      c.next_state.push(steps[index + 1]?.state ?? (isTimeout ? afterLimit : -1));
      c.reward.push(isLast ? record.reward : 0);
      c.done.push(isLast ? 1 : 0);
      c.timeout.push(isTimeout ? 1 : 0);
      c.episode.push(episode);
      c.step.push(index);
      c.chosen.push(step.chosen);
      c.explored.push(step.explored ? 1 : 0);
      for (const row of step.candidates) c.candidate_action.push(row);
      c.candidate_offset.push(c.candidate_action.length);
    });
  }

  get counts(): { transitions: number; candidates: number; episodes: number; successes: number } {
    const c = this.#columns;
    return {
      transitions: c.state.length,
      candidates: c.candidate_action.length,
      episodes: c.episode_task.length,
      successes: c.episode_success.reduce((sum, one) => sum + one, 0),
    };
  }

  get taskNames(): string[] {
    return [...this.#tasks.keys()];
  }

  /** Widest elements first, so that every array is aligned to its elements in the file. */
  tensors(): Tensor[] {
    const order = Object.keys(typed);
    return Object.entries(this.#columns)
      .map(([name, values]): Tensor => {
        const dtype = dtypes[name as keyof typeof dtypes];
        return { name, dtype, shape: [values.length], data: bytesView(typed[dtype](values)) };
      })
      .sort((a, b) => order.indexOf(a.dtype) - order.indexOf(b.dtype));
  }

  #taskIndex(name: string): number {
    const known = this.#tasks.get(name);
    if (known !== undefined) return known;
    this.#tasks.set(name, this.#tasks.size);
    return this.#tasks.size - 1;
  }
}

const typed = {
  I64: (values: number[]) => BigInt64Array.from(values, BigInt),
  I32: (values: number[]) => Int32Array.from(values),
  F32: (values: number[]) => Float32Array.from(values),
  U8: (values: number[]) => Uint8Array.from(values),
};

const dtypes = {
  state: 'I64',
  action: 'I64',
  task: 'I64',
  next_state: 'I64',
  reward: 'F32',
  done: 'U8',
  timeout: 'U8',
  episode: 'I32',
  step: 'I32',
  chosen: 'I32',
  explored: 'U8',
  candidate_offset: 'I64',
  candidate_action: 'I64',
  episode_task: 'I32',
  episode_success: 'U8',
  episode_first: 'I64',
  episode_steps: 'I32',
  episode_split: 'F32',
} as const;
