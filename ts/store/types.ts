/**
 * The domain, as it lies on disk: what a step, an episode and a run record. Terms are those of the field and are
 * the same in C++, TypeScript, JSON and prose. The JSON Schemas in this folder are the contract; these types
 * describe the same things to the compiler.
 */

export type Json = null | boolean | number | string | Json[] | { [key: string]: Json };

/** One action as the policy wrote it: a type and that type's arguments, e.g. {type: 'click', element: 'button "OK"'}. */
export interface Action {
  type: string;
  [argument: string]: Json;
}

/** What a proposer offers for one step. */
export interface Candidate {
  action: Action;
  /** Why: facts and reasoning of this candidate alone. Embedded with the action. */
  thought: string;
  /** Facts the policy wants to keep for later steps. */
  note: string;
}

/** A malformed candidate: recorded and counted, never executed, never silently dropped. */
export interface CandidateError {
  code: string;
  message: string;
  /** What the proposer said, shortened. */
  raw: string;
}

/** Values of one step. All arrays run over the candidates, in their order. */
export interface StepScores {
  q: number[];
  /** Standard deviation over Q heads; zeros with one head. */
  spread: number[];
  v: number;
}

/** A selector's decision. `evidence` is whatever the rule wants a reader of the trace to see. */
export interface Selection {
  selector: string;
  index: number;
  reason: string;
  evidence?: { [key: string]: Json };
}

/** CSS pixels from the top left corner of the viewport. */
export interface Point {
  /** CSS pixels of the viewport, origin at its top left. */
  x: number;
  y: number;
}

/** Where on the page an action takes place, and how that was found. */
export interface Grounding {
  localizer: string;
  point: Point;
  /** The element found, in words. */
  element: string;
}

/** What executing an action led to, told to the policy in the next step. */
export interface ActionResult {
  ok: boolean;
  /** One sentence, e.g. 'clicked button "OK"' or 'no element matches link "Help"'. */
  message: string;
}

/** What calls took: tokens, time, money. */
export interface Usage {
  purpose: 'policy' | 'picker' | 'localizer' | 'judge' | 'embedder';
  model: string;
  inputTokens: number;
  outputTokens: number;
}

/** What was seen, as stored: the page's elements are not, its picture is. */
export interface ObservationRecord {
  url: string;
  title: string;
  viewport: { width: number; height: number; deviceScaleFactor: number };
  scroll: { x: number; y: number };
  /** Path relative to the attempt's folder. */
  screenshot: string;
  /** What happened since the last observation: dialogs, new tabs, downloads. */
  events: string[];
}

/** One line of steps.jsonl. */
export interface StepRecord {
  index: number;
  observation: ObservationRecord;
  candidates: Candidate[];
  candidateErrors: CandidateError[];
  scores: StepScores | null;
  selection: Selection;
  grounding: Grounding | null;
  result: ActionResult;
  usage: Usage[];
  /** Milliseconds by phase: observe, propose, score, ground, act, settle. */
  timings: Record<string, number>;
}

/**
 * How an episode ended. An infrastructure fault is not an outcome: it is a retry. `answered`: the agent ended it
 * with an answer that nothing has judged; `no-answer`: the policy offered nothing that could be done; `stuck`: it did
 * the same thing in the same state again and again.
 */
export const outcomes = [
  'success',
  'failure',
  'answered',
  'step-limit',
  'time-limit',
  'no-answer',
  'stuck',
  'budget',
] as const;
/** How an episode ended. */
export type Outcome = (typeof outcomes)[number];

/** What makes an episode the same episode, whoever runs it and however often. */
export interface EpisodeKey {
  benchmark: string;
  task: string;
  seed: number;
  policy: string;
  selector: string;
  /** Which Q-function generation chose: 'none' or a model's id. */
  generation: string;
  repeat: number;
}

/** What an episode cost, counted alike for every method. */
export interface EpisodeCosts {
  /** Candidates that the policy was asked for and gave, malformed ones included. */
  proposals: number;
  /** Actions carried out, those of attempts and replays included. */
  steps: number;
  /** Different states, actions and tasks that were embedded. */
  embeddings: number;
  /** Times that the task instance was begun. */
  starts: number;
}

/** episodes/<key>.json: the commit. An episode exists when this file exists. */
export interface EpisodeRecord {
  version: 1;
  key: EpisodeKey;
  attempt: string;
  instruction: string;
  startUrl: string;
  outcome: Outcome;
  /** 1 for success, else 0; what IQL sees on the last transition. */
  reward: number;
  /** The benchmark's own score before it became 0 or 1; null where there is none. */
  rawReward: number | null;
  /** The text of the answer action, if one was given. */
  answer: string | null;
  steps: number;
  /** What it cost, attempts and replays included; absent in episodes of older versions. */
  costs?: EpisodeCosts;
  /** The state after the last action where a limit ended the episode, so that training can bootstrap; else null. */
  finalObservation: ObservationRecord | null;
  startedAt: string;
  durationMs: number;
  /** sha256 of steps.jsonl. */
  stepsSha256: string;
}

/** attempts/<uuid>/attempt.json: what the attempt was for, so that an unfinished one can be looked at. */
export interface AttemptRecord {
  version: 1;
  key: EpisodeKey;
  instruction: string;
  startUrl: string;
  startedAt: string;
}

/** One line of index.jsonl: a commit in short. Derived from the commit files and rebuilt from them at will. */
export interface IndexEntry {
  key: EpisodeKey;
  attempt: string;
  outcome: Outcome;
  reward: number;
  steps: number;
}

/** run.json: written first, never changed. */
export interface RunRecord {
  version: 1;
  kind: 'collect' | 'evaluate' | 'agent';
  id: string;
  createdAt: string;
  /** The resolved configuration: every option with its value. */
  config: { [key: string]: Json };
  seed: number;
  versions: { [name: string]: string };
  gitCommit: string | null;
}
