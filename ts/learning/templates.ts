/**
 * What the embedder reads: the words around a state, an action and a task, and the chat frame of the Qwen2.5-VL
 * models around those words. Any change here is a new `templateVersion`, which is part of every fingerprint.
 *
 * A state is written in the order system, task, history, screenshot: the history only ever grows at its end, so
 * consecutive states share a prefix.
 */
import type { Action, ActionResult, Json } from '../store/types.js';

/** Counts up with every change of the texts, and is part of the profile. */
export const templateVersion = 'boq-1';

/** A step that was taken, as later states show it. The policy's prompt uses the same line. */
export interface PastStep {
  action: Action;
  thought: string;
  note: string;
  result: ActionResult;
}

/** One turn of a conversation. Images stand where they are shown; their pixels travel beside the prompt, in order. */
export interface Turn {
  role: 'system' | 'user' | 'assistant';
  content: readonly (string | typeof image)[];
}

/** Marks the place of an image in a turn. */
export const image = Symbol('image');

/** A control token of the chat format, by its content. */
export interface ControlPiece {
  control: string;
}

/** A prompt as the tokenizer takes it: strings are content (never control tokens), the rest are control tokens. */
export type Piece = string | ControlPiece;

/** The VL models' default; the text-only Qwen2.5 has another. */
const defaultSystem = 'You are a helpful assistant.';

/** Steps that a state shows at most, and how many are dropped at once when there are more. */
const shownSteps = 24;
const droppedBlock = 8;

/** Longest text of one field of one step, in UTF-16 units. */
const fieldLimit = 2000;

const imStart: Piece = { control: '<|im_start|>' };
const imEnd: Piece = { control: '<|im_end|>' };
const imagePieces: readonly Piece[] = [
  { control: '<|vision_start|>' },
  { control: '<|image_pad|>' },
  { control: '<|vision_end|>' },
];

/**
 * The chat format of the VL models: every turn between im_start and im_end, a default system turn where the first
 * turn is none, exactly one image-pad token for each image. Neighbouring strings are joined, because the tokenizer
 * must see them as one text.
 */
export function renderChat(turns: readonly Turn[], options: { generationPrompt?: boolean } = {}): Piece[] {
  const pieces: Piece[] = [];
  const push = (piece: Piece): void => {
    const last = pieces.length - 1;
    if (typeof piece === 'string' && typeof pieces[last] === 'string') pieces[last] += piece;
    else if (piece !== '') pieces.push(piece);
  };
  const all: readonly Turn[] =
    turns[0]?.role === 'system' ? turns : [{ role: 'system', content: [defaultSystem] }, ...turns];
  for (const turn of all) {
    push(imStart);
    push(`${turn.role}\n`);
    for (const part of turn.content) {
      if (part === image) for (const piece of imagePieces) push(piece);
      else push(part);
    }
    push(imEnd);
    push('\n');
  }
  if (options.generationPrompt) {
    push(imStart);
    push('assistant\n');
  }
  return pieces;
}

/** The instruction on its own. */
export function taskPrompt(instruction: string): Piece[] {
  return renderChat([{ role: 'user', content: [`Task: ${wellFormed(instruction).trim()}`] }]);
}

/** What of a candidate is read: all of it, or its type and thought alone, so that Q cannot learn names by heart. */
export const actionViews = ['whole', 'thought'] as const;
export type ActionView = (typeof actionViews)[number];

/**
 * What a candidate would do and why. Equal candidates give equal prompts whatever the order of their arguments.
 * @param view `thought` leaves out the action's arguments: what carries over to other tasks is the reason
 */
export function actionPrompt(
  candidate: { action: Action; thought: string; note: string },
  view: ActionView = 'whole',
): Piece[] {
  return renderChat([{ role: 'user', content: [actionText(candidate, view)] }]);
}

function actionText(
  { action, thought, note }: { action: Action; thought: string; note: string },
  view: ActionView,
): string {
  const lines = [`Action: ${describeAction(view === 'whole' ? action : { type: action.type })}`];
  if (thought.trim() !== '') lines.push(`Thought: ${oneLine(thought)}`);
  if (note.trim() !== '') lines.push(`Note: ${oneLine(note)}`);
  return lines.join('\n');
}

/** Task, history and the place of the screenshot. */
export function statePrompt(state: { instruction: string; history: readonly PastStep[] }): Piece[] {
  const dropped = droppedSteps(state.history.length);
  const lines = state.history
    .slice(dropped)
    .map((step, index) => `${dropped + index + 1}. ${describeStep(step)}\n`);
  const omission = dropped > 0 ? `(the first ${dropped} are left out)\n` : '';
  const text = [
    `Task: ${wellFormed(state.instruction).trim()}\n\nSteps so far:\n`,
    omission,
    ...lines,
    '\nScreen now:\n',
  ].join('');
  return renderChat([{ role: 'user', content: [text, image] }]);
}

/**
 * How many of the oldest steps a state leaves out: none up to a limit, then whole blocks, so that the prefix stays
 * the same for as many steps as a block has.
 */
export function droppedSteps(count: number): number {
  return count <= shownSteps ? 0 : Math.ceil((count - shownSteps) / droppedBlock) * droppedBlock;
}

/** One past step in one line: action, thought, note and result. */
export function describeStep(step: PastStep): string {
  const parts = [describeAction(step.action)];
  if (step.thought.trim() !== '') parts.push(`thought: ${oneLine(step.thought)}`);
  if (step.note.trim() !== '') parts.push(`note: ${oneLine(step.note)}`);
  parts.push(`result: ${step.result.ok ? '' : 'failed, '}${oneLine(step.result.message)}`);
  return parts.join('; ');
}

/** 'write element: textbox "Name", text: Anna': the type, then its arguments sorted by name. */
export function describeAction(action: Action): string {
  const { type, ...rest } = action;
  const words = Object.keys(rest)
    .sort()
    .map((name) => `${name}: ${oneLine(argumentText(rest[name] ?? null))}`);
  return [oneLine(type), words.join(', ')].filter((part) => part !== '').join(' ');
}

function argumentText(value: Json): string {
  return typeof value === 'string' ? value : JSON.stringify(value);
}

/** White space folded, length limited, lone surrogates replaced. */
function oneLine(text: string): string {
  const folded = text.replace(/\s+/g, ' ').trim();
  return wellFormed(folded.length <= fieldLimit ? folded : `${folded.slice(0, fieldLimit)}…`);
}

/** A page may hold half a character; a tokenizer cannot. */
function wellFormed(text: string): string {
  return text.replace(/\p{Cs}/gu, '\ufffd');
}
