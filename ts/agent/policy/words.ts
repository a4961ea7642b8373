/** Words as the page policy compares them. */

export const fold = (text: string): string =>
  text.toLowerCase().replace(/[“”]/g, '"').replace(/[‘’]/g, "'").replace(/\s+/g, ' ').trim();

/** Words, numbers, handles and addresses; punctuation at their ends is dropped. */
export function wordsOf(text: string): string[] {
  return (fold(text).match(/[\p{L}\p{N}@#][\p{L}\p{N}@#.'/:_+-]*/gu) ?? []).map((word) =>
    word.replace(/[.'/:_-]+$/, ''),
  );
}

const stopWords = new Set(
  (
    'a an the and or then of to in on at by for from with into onto as is are be it its this that these those there here their ' +
    'them they you your me my i he she his her please using use find click press hit tap select choose pick check tick enter ' +
    'type write input fill go navigate switch between below above following find locate mark'
  ).split(' '),
);

export const isStopWord = (word: string): boolean => stopWords.has(word);

/** Words that say something: no stop words. */
export const contentWords = (text: string): string[] => wordsOf(text).filter((word) => !stopWords.has(word));

// What controls and icons are called on one site and another.
const groups: readonly string[] = [
  'delete trash remove bin discard',
  'star important favorite favourite bookmark',
  'like heart',
  'reply respond answer',
  'search find lookup magnifier',
  'login signin logon',
  'signup register',
  'send submit',
  'cart basket bag',
  'close dismiss',
  'settings preferences options gear',
  'email mail message',
  'aqua cyan',
  'fuchsia magenta',
  'gray grey',
  'next forward',
  'previous back prev',
  'phone telephone tel',
  'item shape',
];
const groupOf = new Map<string, number>();
groups.forEach((group, index) => {
  for (const word of group.split(' ')) if (!groupOf.has(word)) groupOf.set(word, index);
});

const stem = (word: string): string => (word.length > 4 ? word.replace(/(?:ies|es|s|ing|ed)$/, '') : word);

/** The same word, a form of it, or another name for the same thing. */
export function alike(a: string, b: string): boolean {
  if (a === b || stem(a) === stem(b)) return true;
  const group = groupOf.get(a);
  return group !== undefined && group === groupOf.get(b);
}

/** Where the phrase stands in the text as whole words, -1 where it does not. Short phrases must agree in case. */
export function phrasePosition(text: string, phrase: string): number {
  const wanted = phrase.trim();
  if (!wanted) return -1;
  const exact = wanted.length <= 2;
  const source = exact ? text : fold(text);
  const target = exact ? wanted : fold(wanted);
  for (let at = source.indexOf(target); at >= 0; at = source.indexOf(target, at + 1)) {
    const before = source[at - 1] ?? ' ';
    const after = source[at + target.length] ?? ' ';
    const edge = (inner: string | undefined, outer: string): boolean =>
      !/[\p{L}\p{N}]/u.test(inner ?? '') || !/[\p{L}\p{N}]/u.test(outer);
    if (edge(target[0], before) && edge(target.at(-1), after)) return at;
  }
  return -1;
}
