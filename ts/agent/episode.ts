/** The parts that an episode is played with, what it tells whoever watches, and how it ends. */
import type { RandomSource } from '../core/random.js';
import type {
  Candidate,
  CandidateError,
  ObservationRecord,
  Outcome,
  Selection,
  StepRecord,
  StepScores,
} from '../store/types.js';
import type { Budget } from './budget.js';
import type { IrreversibleAction } from './irreversible.js';
import type { LoopGuard } from './loop-guard.js';
import type { Critic, Episode, Localizer, Observation, Proposer, Screenshot, Selector } from './types.js';

/** Where an episode is written as it goes on; an attempt of the store is one. */
export interface EpisodeRecorder {
  /** Takes a screenshot and returns the path under which the record names it. `name` is new each time. */
  shot(name: string, screenshot: Screenshot): string;
  step(record: StepRecord): Promise<void>;
}

/** What happens inside an episode, in order, for whoever watches. */
export type EpisodeEvent =
  | { type: 'observed'; step: number; observation: Observation }
  | { type: 'candidate'; step: number; index: number; candidate: Candidate }
  | { type: 'candidate-error'; step: number; error: CandidateError }
  | {
      type: 'decided';
      step: number;
      candidates: readonly Candidate[];
      scores: StepScores | null;
      selection: Selection;
    }
  | { type: 'step'; step: number; record: StepRecord }
  | { type: 'end'; result: EpisodeResult };

/** When an episode ends by itself. */
export interface EpisodeLimits {
  maxSteps: number;
  /** Milliseconds from the first observation on; Infinity for none. */
  maxMs: number;
}

/** The parts of an episode: where it happens, who proposes, scores, selects and records. */
export interface RunEpisodeOptions {
  episode: Episode;
  proposer: Proposer;
  selector: Selector;
  localizer: Localizer;
  /** Needed by selectors that need scores; null otherwise. */
  critic: Critic | null;
  /** Candidates a step, for selectors that choose among several. */
  n: number;
  limits: EpisodeLimits;
  /** Draws of one step for one purpose; equal keys must give equal draws. */
  random: (step: number, purpose: 'propose' | 'select') => RandomSource;
  recorder: EpisodeRecorder;
  /** Tells the policy when it goes round in circles, and ends the episode when that does not help. */
  guard?: LoopGuard;
  /** Ends the episode once it is spent. */
  budget?: Budget;
  /** At a limit on steps or cost: `fail`, or `answer` to ask the policy for one last answer. Default fail. */
  onLimit?: 'fail' | 'answer';
  signal?: AbortSignal;
  onEvent?: (event: EpisodeEvent) => void;
  /** Waited for after each observation, before candidates are asked for. */
  beforeStep?: (observation: Observation, step: number) => Promise<void>;
  /** Asked before an action is carried out; false ends the episode there with outcome 'budget'. */
  beforeAction?: (candidate: Candidate, step: number) => Promise<boolean>;
  /** Waited for once a step is recorded. */
  afterStep?: (record: StepRecord) => Promise<void>;
  /**
   * Asked before an action that looks as if it could not be taken back; false leaves it undone, the policy is told,
   * and the episode goes on.
   */
  confirm?: (action: IrreversibleAction, signal: AbortSignal) => Promise<boolean>;
}

/** How an episode ended. */
export interface EpisodeResult {
  outcome: Outcome;
  /** 1 for success, else 0. */
  reward: number;
  rawReward: number | null;
  answer: string | null;
  steps: number;
  finalObservation: ObservationRecord | null;
}
