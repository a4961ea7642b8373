/** What the loop asks of the stages below it, and what they answer. */
import type { PlanFault } from '../runner.js';
import type { SeedRange } from '../stage.js';
import type { LoopBudget } from './budget.js';
import type { StartValues } from './curriculum.js';

/** A run of the loop. */
export interface LoopRun {
  /** Path of its folder. */
  path: string;
  /** 0 explores; k exploits the model of generation k - 1. */
  generation: number;
  tasks: string[];
  selector: string;
  n: number;
  seeds: SeedRange;
  seed: number;
  /** The model that chooses; null while there is none. */
  model: string | null;
}

/** What a run holds once its collecting has ended, those episodes included that earlier sittings played. */
export interface CollectOutcome {
  episodes: number;
  successes: number;
  steps: number;
  /** Dollars by the price table. */
  usd: number;
  /** False where the budget ended the run before its last episode. */
  complete: boolean;
  /** Episodes that were given up. */
  faults: PlanFault[];
}

/** One measurement on the validation episodes. */
export interface Validation {
  episodes: number;
  /** 0 to 1. */
  successRate: number;
  /** Over episodes; null where there are too few. */
  standardError: number | null;
  /** Override margin that was chosen here, in units of Q; null where none was asked for. */
  margin: number | null;
  /** What the model expects of each task; empty for the policy alone, and without a curriculum. */
  startValues: StartValues;
  /** Dollars by the price table. */
  usd: number;
}

/** What a model is trained on, and where it goes. */
export interface LoopTraining {
  /** Embedded runs. */
  runs: readonly string[];
  /** In all of them together. */
  episodes: number;
  /** Model folder. */
  out: string;
  /** Model folder whose weights it starts from; null: from new ones. */
  startFrom: string | null;
  /** Of its draws and its networks. */
  seed: number;
}

/** What the loop asks of the stages: {@link RealStages}; tests have others. */
export interface LoopStages {
  /** Plays a run, or what is left of it, until it is complete or the budget is spent. */
  collect(run: LoopRun, budget: LoopBudget, tell: Tell): Promise<CollectOutcome>;
  embed(runs: readonly string[], tell: Tell): Promise<void>;
  train(request: LoopTraining, tell: Tell): Promise<{ transitions: number; seconds: number }>;
  /** @param model null: the policy alone */
  validate(model: string | null, out: string, tell: Tell): Promise<Validation>;
  /** Makes `to` a copy of the model `from`, whole or not at all. */
  keep(from: string, to: string): Promise<void>;
}

/** @param done of `total`; `episodes`: played so far in this stage, where it plays */
export type Tell = (progress: { done: number; total: number; note: string; episodes?: number }) => void;
