/** What the instruction means on this page, after what was done: worked out once a step, used by every fact. */
import type { HistoryEntry, Observation, PageElement } from '../types.js';
import { assignValues, type FieldValue, fitsConditions, holds, isField, namedOptions } from './fields.js';
import type { Instruction, Quotation } from './instruction.js';
import { contentWords, fold, isStopWord, phrasePosition, wordsOf } from './words.js';

export interface Situation {
  instruction: Instruction;
  observation: Observation;
  history: readonly HistoryEntry[];
  fields: Map<number, FieldValue>;
  /** Options still to choose, by list. */
  options: Map<number, string[]>;
  /** Where the instruction names an element; absent for those it does not name. */
  named: Map<number, Naming>;
  /** Names and quotations of the instruction that are nowhere to be seen. */
  missing: string[];
  /** Elements that are to be filled, chosen or checked and are not yet. */
  emptyFields: number;
  openChoices: number;
  /** Scrolling was asked for and can go on. */
  mustScroll: boolean;
  /** Elements with the same role and name, by that. */
  alike: Map<string, PageElement[]>;
  /** The element at the place in a list that the instruction gives. */
  atPlace: PageElement | null;
  /** The list goes on further than what is shown. */
  placeBeyond: boolean;
}

export interface Naming {
  position: number;
  kind: 'quoted' | 'quoted-loosely' | 'phrase' | 'fits';
}

const choiceRoles = new Set(['checkbox', 'radio', 'switch', 'option', 'menuitemcheckbox', 'menuitemradio']);

export const isChoice = (element: PageElement): boolean => choiceRoles.has(element.role);
export const isChosen = (element: PageElement): boolean =>
  element.checked === true || element.selected === true;
export const alikeKey = (element: PageElement): string => `${element.role} ${fold(element.name)}`;

export function timesClicked(element: PageElement, history: readonly HistoryEntry[]): number {
  return history.filter(
    ({ action, result }) => action.type === 'click' && result.ok && action.element === element.description,
  ).length;
}

export function isNext(element: PageElement): boolean {
  return /^(next\b.*|>|›|»|>>|→|more results?|load more|show more)$/i.test(element.name.trim());
}

/** Clicking it shows more: another tab, a closed section, a menu, the next page. */
export function isOpener(element: PageElement): boolean {
  if (element.expanded === false || element.tag === 'summary') return true;
  if (element.role === 'tab') return element.selected !== true && element.expanded !== true;
  if (element.role === 'text' || element.role === 'heading' || isField(element)) return false;
  const name = fold(element.name);
  if (isNext(element)) return true;
  return (
    /^(tab|section|page|part|step|chapter)\b|\b(more|show|expand|expandable|see|view|details|menu|open)\b|^(\+|▸|▶|…|\.\.\.|\d{1,2})$/.test(
      name,
    ) && name.length < 40
  );
}

const submitWords =
  /^(submit|ok|okay|login|log in|sign in|sign up|register|search|send|go|save|apply|done|continue|confirm|finish|book|order|buy|post|update|add|create|checkout)\b|\b(send|submit)\b/;

export function isSubmit(element: PageElement): boolean {
  if (element.role !== 'button' && element.role !== 'clickable' && element.role !== 'link') return false;
  return (
    element.inputType === 'submit' || (submitWords.test(fold(element.name)) && element.name.length <= 30)
  );
}

function nameElement(
  element: PageElement,
  instruction: Instruction,
  found: readonly Quotation[],
): Naming | null {
  const name = element.name.trim();
  if (!name || isField(element)) return null;
  for (const { text, position } of found) if (text === name) return { position, kind: 'quoted' };
  for (const { text, position } of found) {
    const plain = (value: string): string => fold(value).replace(/[.,;:!?]+$/, '');
    if (plain(text) === plain(name)) return { position, kind: 'quoted-loosely' };
  }
  if (name.length <= 120 && fitsConditions(name, instruction) === true && element.role !== 'text')
    return { position: 0, kind: 'fits' };
  if (name.length > 60 || wordsOf(name).every((word) => isStopWord(word) && name === name.toLowerCase()))
    return null;
  const position = phrasePosition(instruction.text, name);
  if (position < 0) return null;
  // Inside a longer quotation it is only a part of what is meant.
  const inside = instruction.quotations.some(
    (quotation) => position >= quotation.position && position < quotation.position + quotation.text.length,
  );
  return inside ? null : { position, kind: 'phrase' };
}

function visibleWords(observation: Observation): Set<string> {
  const words = new Set<string>();
  for (const element of observation.elements) {
    for (const text of [element.name, element.context, element.value, ...element.options]) {
      for (const word of wordsOf(text)) words.add(word);
    }
  }
  return words;
}

function findPlace(
  instruction: Instruction,
  observation: Observation,
  history: readonly HistoryEntry[],
): { element: PageElement | null; beyond: boolean } {
  if (instruction.place === null) return { element: null, beyond: false };
  const columns = new Map<string, PageElement[]>();
  for (const element of observation.elements) {
    if (
      element.role !== 'link' &&
      element.role !== 'clickable' &&
      element.role !== 'option' &&
      element.role !== 'menuitem'
    )
      continue;
    if (isOpener(element)) continue;
    const key = `${element.role} ${Math.round(element.box.x)}`;
    columns.set(key, [...(columns.get(key) ?? []), element]);
  }
  const list = [...columns.values()].sort((a, b) => b.length - a.length)[0] ?? [];
  if (list.length < 2) return { element: null, beyond: false };
  const turned = history.filter(
    ({ action, result }) =>
      result.ok && action.type === 'click' && /"(next\b[^"]*|>|›|»|>>|→)"/i.test(String(action.element)),
  ).length;
  const index = instruction.place - 1 - turned * list.length;
  return { element: list[index] ?? null, beyond: index >= list.length };
}

export function readSituation(
  instruction: Instruction,
  observation: Observation,
  history: readonly HistoryEntry[],
): Situation {
  const { elements, scroll } = observation;
  const finds = instruction.quotations.filter(({ use }) => use === 'find');
  const fields = assignValues(elements.filter(isField), instruction);
  const named = new Map<number, Naming>();
  const options = new Map<number, string[]>();
  const alike = new Map<string, PageElement[]>();
  let emptyFields = 0;
  let openChoices = 0;
  for (const element of elements) {
    alike.set(alikeKey(element), [...(alike.get(alikeKey(element)) ?? []), element]);
    const naming = nameElement(element, instruction, finds);
    if (naming) named.set(element.id, naming);
    const field = fields.get(element.id);
    if (field && !holds(element, field.value, instruction)) emptyFields++;
    if (element.options.length > 0) {
      const chosen = new Set(element.value.split(', ').map(fold));
      const wanted = namedOptions(element, instruction).filter((option) => !chosen.has(fold(option)));
      options.set(element.id, wanted);
      openChoices += wanted.length;
    } else if (naming && isChoice(element) && element.role !== 'option' && !isChosen(element)) openChoices++;
  }
  const seen = visibleWords(observation);
  const missing = [...instruction.names, ...finds.map(({ text }) => text)].filter(
    (name) => !contentWords(name).every((word) => seen.has(word)),
  );
  const place = findPlace(instruction, observation, history);
  const mustScroll =
    instruction.scroll === 'down'
      ? scroll.y < scroll.maxY - 1
      : instruction.scroll === 'up'
        ? scroll.y > 1
        : false;
  return {
    instruction, observation, history, fields, options, named, missing, emptyFields, openChoices, mustScroll, alike,
    atPlace: place.element, placeBeyond: place.beyond,
  }; // biome-ignore format: a list of names
}
