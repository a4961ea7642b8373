/** Which value of the instruction belongs into which field of the page. */
import type { PageElement } from '../types.js';
import type { Instruction } from './instruction.js';
import { alike, contentWords, fold, wordsOf } from './words.js';

export interface FieldValue {
  value: string;
  /** The words in front of the value are those of the field's label. */
  labelled: boolean;
}

const textRoles = new Set([
  'textbox',
  'searchbox',
  'spinbutton',
  'combobox',
  'datefield',
  'timefield',
  'colorfield',
  'slider',
]);

/** Text fields, and fields that take a date, a time, a colour or a number. Native lists are no fields here. */
export function isField(element: PageElement): boolean {
  return (
    textRoles.has(element.role) &&
    element.options.length === 0 &&
    !element.disabled &&
    element.tag !== 'button'
  );
}

const patterns: Record<string, RegExp> = {
  datefield: /\b\d{4}-\d{1,2}-\d{1,2}\b|\b\d{1,2}\/\d{1,2}\/\d{4}\b/,
  timefield: /\b\d{1,2}:\d{2}(?:\s*[ap]m)?\b/i,
  spinbutton: /(?<![\w.])-?\d+(?:\.\d+)?(?![\w/:])/,
  slider: /(?<![\w.])-?\d+(?:\.\d+)?(?![\w/:])/,
  colorfield: /#[0-9a-f]{6}\b/i,
};
const inputPatterns: Record<string, RegExp> = {
  email: /[\w.+-]+@[\w-]+\.[\w.]+\w/,
  tel: /\+?\d[\d\s()-]{5,}\d/,
  url: /https?:\/\/\S+/,
};

// "forward it to Orel", "set the quantity to 3": the value after the label, up to the next pause.
function valueAfterLabel(element: PageElement, instruction: Instruction): string | null {
  const label = fold(element.name)
    .replace(/[:*?]+$/, '')
    .trim();
  if (!label || label.length > 30) return null;
  const pattern = new RegExp(
    `(?<![\\p{L}])${label.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')}\\b\\s*(?::|=|is|as|to|of)?\\s+([^,.;"]+?)(?=\\s+(?:and|then|in|into|with|on|from|to|for|as)\\b|[,;.]|$)`,
    'giu',
  );
  for (const match of instruction.text.matchAll(pattern)) {
    const value = (match[1] ?? '').trim();
    const proper = /^(?:[\p{Lu}\p{N}@#]|\S+@)/u.test(value);
    if (value && proper && value.split(' ').length <= 4) return value;
  }
  return null;
}

export function assignValues(
  fields: readonly PageElement[],
  instruction: Instruction,
): Map<number, FieldValue> {
  const assigned = new Map<number, FieldValue>();
  const open = instruction.quotations.filter(({ use }) => use === 'write' || use === 'start');
  const take = (field: PageElement, index: number, labelled: boolean): void => {
    const [quotation] = open.splice(index, 1);
    if (quotation) assigned.set(field.id, { value: quotation.text, labelled });
  };
  for (const field of fields) {
    const label = contentWords(field.name).concat(field.inputType === 'password' ? ['password'] : []);
    // The value whose own words, nearest first, name the field.
    const index = open.findIndex(({ before }) =>
      before.slice(-4).some((word) => label.some((own) => alike(own, word))),
    );
    if (index >= 0) take(field, index, true);
  }
  for (const field of fields) {
    if (assigned.has(field.id)) continue;
    const pattern = inputPatterns[field.inputType] ?? patterns[field.role];
    const match = pattern?.exec(instruction.text)?.[0];
    const written = match ?? valueAfterLabel(field, instruction);
    if (written && !open.some(({ text }) => text.includes(written)))
      assigned.set(field.id, { value: written, labelled: true });
  }
  const rest = fields.filter((field) => !assigned.has(field.id));
  for (const field of rest) if (open.length > 0) take(field, 0, false);
  // "into both fields", "and confirm it"
  const values = [...assigned.values()];
  if (instruction.everyField && values.length === 1 && values[0]) {
    for (const field of rest)
      if (!assigned.has(field.id)) assigned.set(field.id, { ...values[0], labelled: false });
  }
  return assigned;
}

/** Whether a text answers the beginnings and ends that the instruction asks for; null where it asks for none. */
export function fitsConditions(text: string, instruction: Instruction): boolean | null {
  const conditions = instruction.quotations.filter(({ use }) => use === 'start' || use === 'end');
  if (conditions.length === 0) return null;
  return conditions.every((condition) =>
    condition.use === 'start' ? text.startsWith(condition.text) : text.endsWith(condition.text),
  );
}

/** The field already holds what it should. */
export function holds(element: PageElement, value: string, instruction: Instruction): boolean {
  if (fold(element.value) === fold(value)) return true;
  return element.value !== '' && fitsConditions(element.value, instruction) === true;
}

/** Options of a list that the instruction names. */
export function namedOptions(element: PageElement, instruction: Instruction): string[] {
  return element.options.filter((option) => {
    if (!option || option.length > 60) return false;
    const words = wordsOf(option);
    return words.length > 0 && ` ${wordsOf(instruction.text).join(' ')} `.includes(` ${words.join(' ')} `);
  });
}
