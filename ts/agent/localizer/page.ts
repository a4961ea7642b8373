/**
 * Finds elements by the observation's own list: first by the exact description, then by role and words. A near tie
 * or a weak match is a miss with a message for the policy, never a guess.
 */
import type { Localizer, Observation, PageElement } from '../types.js';

const fold = (text: string): string => text.toLowerCase().replace(/[“”]/g, '"').replace(/\s+/g, ' ').trim();
const wordsOf = (text: string): string[] => fold(text).match(/[\p{L}\p{N}@.#_-]+/gu) ?? [];

// Roles that people and models use for one another.
const families: readonly (readonly string[])[] = [
  [
    'textbox',
    'searchbox',
    'combobox',
    'spinbutton',
    'field',
    'input',
    'textarea',
    'datefield',
    'timefield',
    'colorfield',
  ],
  ['link', 'button', 'clickable', 'tab', 'menuitem', 'icon', 'image', 'item', 'treeitem'],
  ['checkbox', 'switch', 'radio', 'menuitemcheckbox', 'menuitemradio', 'box'],
  ['option', 'menuitem', 'item', 'listitem', 'combobox', 'listbox', 'dropdown', 'list'],
  ['text', 'heading', 'label', 'graphic', 'image'],
];

function sameFamily(role: string, words: readonly string[]): boolean {
  return families.some((family) => family.includes(role) && family.some((name) => words.includes(name)));
}

/** 0 to 1: how well the element answers the description. */
function likeness(description: string, element: PageElement): number {
  const quoted = Array.from(description.matchAll(/"([^"]+)"/g), (match) => fold(match[1] ?? ''));
  const name = fold(element.name).replace(/"/g, "'");
  const words = wordsOf(description);
  const outside = wordsOf(description.replace(/"[^"]*"/g, ' '));
  const role = outside.includes(element.role) ? 0.2 : sameFamily(element.role, outside) ? 0.1 : 0;
  if (quoted[0]) {
    const wanted = quoted[0].replace(/…$/, '');
    const option = element.options.some((text) => fold(text) === quoted[0]);
    if (name === quoted[0]) return 0.8 + role;
    if (option) return 0.7 + role;
    if (wanted.length >= 3 && name.startsWith(wanted)) return 0.65 + role;
    if (fold(element.value) === quoted[0]) return 0.5 + role;
  }
  const own = new Set([...wordsOf(element.name), ...wordsOf(element.value)]);
  if (own.size === 0) return role > 0 && words.length <= 2 ? 0.5 + role : 0;
  const content = words.filter(
    (word) =>
      word !== element.role && !/^(the|a|an|in|of|to|with|labeled|named|\d+(st|nd|rd|th))$/.test(word),
  );
  const common = content.filter((word) => own.has(word)).length;
  if (common === 0) return 0;
  return 0.8 * ((2 * common) / (content.length + own.size)) + role;
}

/** Finds elements by their words in the page's own list of elements; needs no model. */
export class PageLocalizer implements Localizer {
  readonly name = 'page';

  async locate(description: string, observation: Observation): ReturnType<Localizer['locate']> {
    const found = findElement(description, observation.elements);
    if (typeof found === 'string') return { found: false, message: found };
    const { x, y, width, height } = found.box;
    return { found: true, point: { x: x + width / 2, y: y + height / 2 }, element: found.description };
  }
}

/** The element meant, or why none is. */
export function findElement(description: string, elements: readonly PageElement[]): PageElement | string {
  const wanted = fold(description);
  const exact =
    elements.find((element) => element.description === description.trim()) ??
    elements.find((element) => fold(element.description) === wanted);
  if (exact) return exact;
  const ranked = elements
    .map((element) => ({ element, score: likeness(description, element) }))
    .filter(({ score }) => score >= 0.5)
    .sort((a, b) => b.score - a.score);
  const [best] = ranked;
  if (!best) return `no element on the page matches ${description}`;
  const equals = ranked.filter(({ score }) => score > best.score - 0.02);
  // "(2nd)" counts the equals in reading order.
  const position = Number(/\((\d+)(?:st|nd|rd|th)\)/.exec(description)?.[1] ?? 0);
  if (position > 0) {
    const inOrder = [...equals].sort((a, b) => a.element.id - b.element.id);
    return inOrder[position - 1]?.element ?? `only ${equals.length} elements match ${description}`;
  }
  if (equals.length === 1) return best.element;
  const context = equals.filter(({ element }) => {
    const words = wordsOf(description);
    return wordsOf(element.context).some(
      (word) => words.includes(word) && !wordsOf(element.name).includes(word),
    );
  });
  if (context.length === 1 && context[0]) return context[0].element;
  const names = equals.slice(0, 4).map(({ element }) => element.description);
  return `several elements match ${description}: ${names.join(', ')}`;
}
