/** What an instruction says, as far as its form shows it: quotations, names, values to write, order, directions. */
import { contentWords, fold, isStopWord, wordsOf } from './words.js';

export interface Quotation {
  text: string;
  position: number;
  /** To be written into a field, to be found on the page, or a condition on a text. */
  use: 'write' | 'find' | 'start' | 'end';
  /** The few words in front of it, nearest last. */
  before: string[];
}

export interface Instruction {
  text: string;
  words: string[];
  quotations: Quotation[];
  /** Proper names and the like that do not stand in quotation marks. */
  names: string[];
  /** A place in a list: 7 for "the 7th search result". */
  place: number | null;
  scroll: 'up' | 'down' | null;
  /** One value belongs into several fields. */
  everyField: boolean;
  /** A question, or a request to tell something: it ends with an answer. */
  wantsAnswer: boolean;
}

const writeCues = new Set(
  'enter type write input fill text value username password name comment message subject into query term keyword caption title'.split(
    ' ',
  ),
);
const findCues = new Set(
  (
    'click press hit tap select choose pick check tick find open expand labeled labelled named called button link tab checkbox ' +
    'box option item icon menu radio file folder widget user section'
  ).split(' '),
);
const places = [
  'first',
  'second',
  'third',
  'fourth',
  'fifth',
  'sixth',
  'seventh',
  'eighth',
  'ninth',
  'tenth',
];

function useOf(before: readonly string[], after: readonly string[]): Quotation['use'] {
  for (const word of [...before].reverse()) {
    if (/^(start|begin)/.test(word)) return 'start';
    if (/^end(s|ing)?$/.test(word)) return 'end';
    if (findCues.has(word)) return 'find';
    if (writeCues.has(word))
      return after[0] && findCues.has(after[0]) && word !== 'enter' && word !== 'type' ? 'find' : 'write';
  }
  return after.some((word) => findCues.has(word)) ? 'find' : 'write';
}

function readQuotations(text: string): Quotation[] {
  const found: Quotation[] = [];
  let last = 0;
  for (const match of text.matchAll(/["“]([^"”]+)["”]|(?<![\p{L}\p{N}])'([^']+)'(?![\p{L}\p{N}])/gu)) {
    const content = match[1] ?? match[2] ?? '';
    const sentence = text.slice(last, match.index);
    const before = wordsOf(sentence).slice(-8);
    const after = wordsOf(text.slice(match.index + match[0].length)).slice(0, 2);
    // With nothing in between that says otherwise, two quotations in a row are used alike.
    const previous = found.at(-1);
    const linked =
      previous &&
      before.every((word) => word === 'and' || word === 'or' || isStopWord(word)) &&
      !before.some((word) => findCues.has(word) || writeCues.has(word));
    found.push({
      text: content,
      position: match.index + 1,
      use: linked ? previous.use : useOf(before, after),
      before,
    });
    last = match.index + match[0].length;
  }
  return found;
}

function readNames(text: string, quotations: readonly Quotation[]): string[] {
  let plain = text;
  for (const { text: quoted } of quotations) plain = plain.replace(quoted, ' ');
  const names: string[] = [];
  for (const sentence of plain.split(/(?<=[.!?:])\s+/)) {
    // The first word of a sentence is written with a capital anyway.
    const tokens = sentence.match(/[\p{L}\p{N}@#][\p{L}\p{N}@#.'_-]*/gu) ?? [];
    tokens.forEach((token, index) => {
      const word = token.replace(/[.'_-]+$/, '');
      const marked =
        /^[@#]/.test(word) ||
        (/^\p{Lu}/u.test(word) && index > 0) ||
        (/\p{N}/u.test(word) && /\p{L}/u.test(word) && !/^\d+(st|nd|rd|th)$/.test(word));
      if (marked && !isStopWord(fold(word))) names.push(fold(word));
    });
  }
  return [...new Set(names)];
}

export function readInstruction(text: string): Instruction {
  const quotations = readQuotations(text);
  const folded = fold(text);
  const numbered = /\b(\d+)(?:st|nd|rd|th)\b/.exec(folded);
  const spelled = places.findIndex((place) => new RegExp(`\\b${place}\\b`).test(folded));
  const scrolls = /\bscroll/.test(folded);
  return {
    text,
    words: contentWords(text),
    quotations,
    names: readNames(text, quotations),
    place: numbered ? Number(numbered[1]) : spelled >= 0 ? spelled + 1 : null,
    scroll: !scrolls
      ? null
      : /\b(top|up|upwards|beginning|start)\b/.test(folded)
        ? 'up'
        : /\b(bottom|down|downwards|end)\b/.test(folded)
          ? 'down'
          : null,
    everyField: /\b(both|each|every|all)\b[^.]*\bfields?\b|\bconfirm|\brepeat/.test(folded),
    wantsAnswer: /\?\s*$|^(what|which|who|when|where|how)\b|\b(tell|answer|report|how many|what is)\b/.test(
      folded,
    ),
  };
}
