/**
 * The joints of one step: observe -> propose -> score -> select -> ground -> act. Policy, browser and localizer
 * implement these interfaces and do not know each other; loop.ts joins them.
 */
import type { RandomSource } from '../core/random.js';
import type {
  Action,
  ActionResult,
  Candidate,
  CandidateError,
  Outcome,
  Point,
  Selection,
  StepScores,
  Usage,
} from '../store/types.js';

/** A visible, interactive or meaningful element of the page, from the DOM; frames and shadow roots included. */
export interface PageElement {
  /** Unique within one observation; meaningless in the next. */
  id: number;
  /** ARIA role, explicit or implied: button, link, textbox, checkbox, radio, option, combobox, tab, text ... */
  role: string;
  /** Accessible name: label, text, placeholder, title; white space folded. */
  name: string;
  tag: string;
  /** Input type for inputs ('text', 'password', 'date' ...), else ''. */
  inputType: string;
  /** Current value of a field, '' where there is none. */
  value: string;
  checked: boolean | null;
  selected: boolean | null;
  expanded: boolean | null;
  disabled: boolean;
  focused: boolean;
  /** Text of a native select's options, else []. */
  options: string[];
  /** Viewport CSS pixels of the visible part. */
  box: { x: number; y: number; width: number; height: number };
  /** Text of the nearest labelled group, row or heading that contains it; '' where none. */
  context: string;
  /** Words for it that are unique on the page: 'button "OK"', 'checkbox "tea" (2nd)'. See elements.ts. */
  description: string;
}

/** A picture of the viewport. */
export interface Screenshot {
  bytes: Uint8Array;
  format: 'png' | 'webp' | 'jpeg';
  /** Image pixels; CSS pixels times the device scale factor. */
  width: number;
  height: number;
}

/** What the agent sees of a page at one moment. */
export interface Observation {
  url: string;
  title: string;
  viewport: { width: number; height: number; deviceScaleFactor: number };
  scroll: { x: number; y: number; maxX: number; maxY: number };
  screenshot: Screenshot;
  elements: PageElement[];
  tabs: { url: string; title: string; active: boolean }[];
  /** Dialogs answered, tabs opened or closed, downloads: one sentence each. */
  events: string[];
}

/** One executed step, as policy and embedder see it later. */
export interface HistoryEntry {
  action: Action;
  thought: string;
  note: string;
  result: ActionResult;
  /** The page before it. */
  screenshot?: Screenshot;
}

/** What a proposer is asked. */
export interface ProposeRequest {
  instruction: string;
  history: readonly HistoryEntry[];
  observation: Observation;
  /** How many candidates to offer; 1 for plain prompting. */
  n: number;
  /** The last chance: a limit is met, and only an answer counts now. */
  mustAnswer?: boolean;
  random: RandomSource;
  signal?: AbortSignal;
}

/** What a proposer says: a candidate, a malformed one, or what it cost. */
export type ProposalEvent =
  | { type: 'candidate'; candidate: Candidate }
  | { type: 'error'; error: CandidateError }
  | { type: 'usage'; usage: Usage };

/** Offers candidates one by one, the policy's own best first. Each can be embedded as soon as it is complete. */
export interface Proposer {
  /** Goes into the episode key; includes every setting that changes behaviour. */
  readonly name: string;
  propose(request: ProposeRequest): AsyncIterable<ProposalEvent>;
  /** What a model would be sent, for people to read; policies without a model have nothing to show. */
  preview?(request: ProposeRequest): string;
}

/** Turns an element description into a point, or says why it cannot (never a blind guess). */
export interface Localizer {
  readonly name: string;
  locate(
    description: string,
    observation: Observation,
    signal?: AbortSignal,
  ): Promise<
    | { found: true; point: Point; element: string; usage?: Usage[] }
    | { found: false; message: string; usage?: Usage[] }
  >;
}

/** Scores the candidates of one step; work starts as soon as an input is known. */
export interface StepScoring {
  add(candidate: Candidate): void;
  /** `usage`: what scoring cost, recorded with the step's other costs. */
  scores(): Promise<StepScores & { usage?: Usage[] }>;
}

/** The Q-function behind its embedder. */
export interface Critic {
  begin(state: {
    instruction: string;
    history: readonly HistoryEntry[];
    screenshot: Screenshot;
    signal?: AbortSignal;
  }): StepScoring;
  /** False where scoring embeds nothing, and so costs nothing. */
  readonly embeds?: boolean;
  /** The chance of success that a Q stands for, where the model was calibrated on held-out episodes. */
  chance?(q: number): number;
}

/** What a selector is asked. */
export interface SelectRequest {
  instruction: string;
  candidates: readonly Candidate[];
  /** null where the selector did not ask for scores. */
  scores: StepScores | null;
  random: RandomSource;
  history: readonly HistoryEntry[];
  /** What the policy saw; for a picker that looks for itself. */
  screenshot: Screenshot;
  signal?: AbortSignal;
}

/** A decision; `usage` is what it cost, recorded with the step's other costs. */
export interface Decision extends Selection {
  usage?: Usage[];
}

/** A rule that picks one of the candidates; it sees candidates and scores, never the page. */
export interface Selector {
  /** Goes into the episode key; includes every setting that changes behaviour. */
  readonly name: string;
  /** Candidates to ask for, given the configured N. */
  candidateCount(n: number): number;
  readonly needsScores: boolean;
  select(request: SelectRequest): Decision | Promise<Decision>;
}

/** What an action would set off: the control that would be pressed, in words. */
export interface Consequence {
  /** Role and name as the page gives them, e.g. 'button "Pay now"'; '' where nothing is there. */
  words: string;
  /** True where Enter goes to a field that no button belongs to; `words` is the field then. */
  isField: boolean;
}

/** Where an episode happens: a browser page prepared for one task. */
export interface Environment {
  observe(signal?: AbortSignal): Promise<Observation>;
  /** What the action would press; null for actions that press nothing. Left out where nothing can be irreversible. */
  consequence?(action: Action, point: Point | null): Promise<Consequence | null>;
  /** Executes one action; `point` is set for actions that name an element. Never throws for page behaviour. */
  act(action: Action, point: Point | null, signal?: AbortSignal): Promise<ActionResult>;
  /** Asked after every action; null while the episode goes on. */
  verdict(): Promise<Verdict | null>;
}

/** A judgement that ends an episode. */
export interface Verdict {
  outcome: Outcome;
  rawReward: number | null;
}

/** One task instance: its text, its start and how it is judged. */
export interface Episode {
  instruction: string;
  startUrl: string;
  environment: Environment;
}
