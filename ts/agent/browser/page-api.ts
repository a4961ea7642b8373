/**
 * What the script that we put into every document offers to the session. The functions in the in-*.ts files run
 * inside the page: they are sent as text and may use nothing from outside their own body but the page itself.
 */
import type { ControlInfo } from '../actions/types.js';
import type { Consequence, PageElement } from '../types.js';

export type RawElement = Omit<PageElement, 'description'>;

export interface RawObservation {
  url: string;
  title: string;
  viewport: { width: number; height: number; deviceScaleFactor: number };
  scroll: { x: number; y: number; maxX: number; maxY: number };
  elements: RawElement[];
}

/** One place an element can be seen at: its document and the offset of that document in the top viewport. */
export interface Place {
  element: Element;
  offsetX: number;
  offsetY: number;
}

export interface PageApi {
  /** Elements with a pointer or click listener. */
  listeners: WeakSet<EventTarget>;
  /** Those among them that listen to the click itself. */
  clickListeners: WeakSet<EventTarget>;
  /** Shadow roots by host, closed ones included. */
  shadowRoots: WeakMap<Element, ShadowRoot>;
  /** Requests of this document that wait for an answer. */
  pendingRequests(): number;
  /** Short timers that have been started and have not fired yet. */
  pendingTimers(): number;
  /** setTimeout outside the page's bookkeeping. */
  later(callback: () => void, ms: number): void;

  shadowOf(element: Element): ShadowRoot | null;
  /** The document inside a frame, null for another origin. */
  documentOf(frame: Element): Document | null;
  elementAt(x: number, y: number): Place | null;
  parentOf(element: Element): Element | null;
  isClickable(element: Element): boolean;
  roleOf(element: Element): string;
  nameOf(element: Element): string;
  textOf(element: Element): string;
  contextOf(element: Element): string;

  observe(): RawObservation;
  settle(capMs: number): Promise<string>;
  /** Lets the page go on until it changes, at most `capMs`. */
  pause(capMs: number): Promise<void>;
  control(x: number, y: number): ControlInfo;
  /**
   * Where to press, once the mouse has arrived: the element that `control` saw may have moved because the mouse left
   * something else. null for the same place.
   */
  aim(x: number, y: number): { x: number; y: number } | null;
  /** The control that a click there, Enter in the field there, or a key in the focused element would press. */
  consequence(x: number, y: number, by: 'click' | 'submit' | 'key'): Consequence;
  choose(x: number, y: number, option: string): boolean;
  setValue(x: number, y: number, value: string): string;
  fileFieldAt(x: number, y: number): Element | null;
  /** Focuses the field at the point and selects its content, so that typing replaces it. */
  prepareTyping(x: number, y: number): { editable: boolean; multiline: boolean; words: string };
  scrollBy(direction: string, x: number, y: number): boolean;
}
