/** What an action is: data (name, schema, description) and one function that carries it out. */
import type { Action, ActionResult, Json, Point } from '../../store/types.js';

/** What lies under a point, as far as an action must know it. */
export interface ControlInfo {
  kind: 'none' | 'select' | 'value' | 'file' | 'text' | 'other';
  /** Words for it in a result sentence, e.g. 'combobox "Country"'. */
  words: string;
  options: { text: string; selected: boolean; disabled: boolean }[];
  multiple: boolean;
  /** Text of the option under the point, where a list shows its options. */
  optionAtPoint: string | null;
  inputType: string;
  disabled: boolean;
}

/** What actions may do to a page. The browser session implements it. */
export interface ActionSurface {
  /** Where `restart` leads. */
  readonly startUrl: string;
  control(point: Point): Promise<ControlInfo>;
  click(point: Point): Promise<void>;
  /** Chooses the option of a native list. */
  choose(point: Point, option: string): Promise<boolean>;
  /** Sets the value of a date, time, colour or range field; returns the value it took. */
  setValue(point: Point, value: string): Promise<string>;
  /** Clicks into the field, replaces its content, and presses Enter when `submit`. */
  type(point: Point, text: string, submit: boolean): Promise<{ editable: boolean; words: string }>;
  /** @returns false where nothing could move in that direction. */
  scroll(direction: 'up' | 'down' | 'left' | 'right'): Promise<boolean>;
  goBack(): Promise<boolean>;
  reload(): Promise<void>;
  /** @returns what went wrong, or null. */
  goto(url: string): Promise<string | null>;
  press(key: string): Promise<void>;
  hover(point: Point): Promise<void>;
  drag(from: Point, to: Point): Promise<void>;
  /** Puts the n-th tab in front, counted from 1; false where there is none. */
  switchTab(number: number): Promise<boolean>;
  /** Gives a file field the named file of the upload folder; what is wrong, or null. */
  upload(point: Point, file: string): Promise<string | null>;
  /** Lets the page go on for a while. */
  pause(): Promise<void>;
}

/** One action; implement it and put it into an ActionRegistry to give an agent one of your own. */
export interface ActionDefinition {
  readonly type: string;
  /** For prompts: what it does and when to use it. */
  readonly description: string;
  /** JSON Schema 2020-12 of the whole action object, `type` included. */
  readonly schema: { [key: string]: Json };
  /** True where `element` must be turned into a point first. */
  readonly needsPoint: boolean;
  /**
   * How it presses a control, which may be one that cannot be taken back: by a click at its point, by Enter in the
   * field there, or by a key in the focused element. Left out, or null, where it presses none.
   */
  presses?(action: Action): 'click' | 'submit' | 'key' | null;
  execute(surface: ActionSurface, action: Action, point: Point | null): Promise<ActionResult>;
}

/** Schema of an action object with these arguments, all of them required, nothing else allowed. */
export function actionSchema(type: string, properties: { [name: string]: Json }): { [key: string]: Json } {
  return {
    type: 'object',
    properties: { type: { const: type }, ...properties },
    required: ['type', ...Object.keys(properties)],
    additionalProperties: false,
  };
}

/** Schema of the `element` argument, for actions that point at something. */
export const elementProperty = {
  type: 'string',
  minLength: 1,
  description: 'The element in words: its role and visible text, and its place where several are alike.',
} as const;

export function text(action: Action, name: string): string {
  const value = action[name];
  return typeof value === 'string' ? value : '';
}

export const done = (message: string): ActionResult => ({ ok: true, message });
export const failed = (message: string): ActionResult => ({ ok: false, message });
