/** What a report shows, already read and computed; pages, plots and the terminal only draw it. */
import type { CurvePoint } from '../evaluation/loop/curve.js';
import type { Estimand, SelectorSummary } from '../evaluation/summary.js';
import type { Action, EpisodeRecord, Point, StepScores } from '../store/types.js';

/** Everything that the page shows. */
export interface ReportData {
  title: string;
  /** ISO time of writing. */
  createdAt: string;
  evaluations: Evaluation[];
  collections: Collection[];
  trainings: Training[];
  loops: LearningLoop[];
  examples: Example[];
  provenance: Provenance[];
}

/** Selectors measured on the same tasks and seeds. */
export interface Evaluation {
  estimand: Estimand;
  benchmark: string;
  tasks: string[];
  seeds: { from: number; to: number };
  baseline: string;
  entries: EvaluationEntry[];
  /** One row a task, one rate in [0, 1] an entry (null where the entry has no episode of the task). */
  byTask: { task: string; rates: (number | null)[] }[];
}

/**
 * What an entry is for. `control`: should gain nothing, whatever the method is worth; `reference`: another policy or
 * selector beside it.
 */
export type EntryRole = 'baseline' | 'method' | 'control' | 'reference';

export interface EvaluationEntry {
  label: string;
  role: EntryRole;
  /** One line: policy, model, margin. */
  note: string;
  summary: SelectorSummary;
}

/** Episodes gathered for training. */
export interface Collection {
  name: string;
  path: string;
  episodes: number;
  successes: number;
  transitions: number;
  byTask: { task: string; episodes: number; successes: number }[];
}

/** A self-improving loop: success on validation seeds as the training data grows. */
export interface LearningLoop {
  name: string;
  path: string;
  points: CurvePoint[];
}

export interface Training {
  name: string;
  path: string;
  /** Series by metric name, steps ascending. */
  curves: { metric: string; points: { step: number; value: number }[] }[];
  /** Facts for the table: steps, parameters, tau, data ... */
  facts: [name: string, value: string][];
  /** What held-out episodes say about Q beside simpler predictors; null where none were held out. */
  offline: { head: string[]; rows: string[][]; notes: string[] } | null;
}

/** One episode shown step by step, with the baseline's episode of the same task and seed beside it. */
export interface Example {
  heading: string;
  reason: string;
  label: string;
  record: EpisodeRecord;
  steps: ExampleStep[];
  /** Steps left out at the end to keep the file small. */
  omittedSteps: number;
  baseline: { label: string; record: EpisodeRecord; actions: string[] } | null;
}

export interface ExampleStep {
  index: number;
  url: string;
  /** data: URL of a small WebP, or null where the file was missing. */
  image: string | null;
  viewport: { width: number; height: number };
  point: Point | null;
  candidates: ExampleCandidate[];
  scores: StepScores | null;
  chosen: number;
  /** Why the selector chose it, in its own words. */
  reason: string;
  result: string;
  ok: boolean;
}

export interface ExampleCandidate {
  action: Action;
  thought: string;
  note: string;
}

/** Where the figures come from: one block for every run and model. */
export interface Provenance {
  name: string;
  path: string;
  facts: [name: string, value: string][];
}

/** True where the values made the selector leave the policy's first candidate. */
export function isOverride(step: ExampleStep): boolean {
  return step.scores !== null && step.chosen !== 0;
}
