/**
 * Words for elements that are unique on their page. Policies name elements by them, localizers find them, people
 * read them in traces: 'button "OK"', 'checkbox "tea" (2nd)', 'button "delete" in "Bob: lunch?"'.
 */
import type { PageElement } from './types.js';

const longestName = 60;
const longestContext = 40;

function shorten(text: string, length: number): string {
  const clean = text.replace(/"/g, "'");
  return clean.length <= length ? clean : `${clean.slice(0, length - 1).trimEnd()}…`;
}

export function ordinal(position: number): string {
  const tens = position % 100;
  const suffix = tens >= 11 && tens <= 13 ? 'th' : (['th', 'st', 'nd', 'rd'][position % 10] ?? 'th');
  return `${position}${suffix}`;
}

function groupBy<T>(items: readonly T[], key: (item: T) => string): Map<string, T[]> {
  const groups = new Map<string, T[]>();
  for (const item of items) {
    const group = groups.get(key(item));
    if (group) group.push(item);
    else groups.set(key(item), [item]);
  }
  return groups;
}

/** Role and quoted name, not yet unique. */
export function plainDescription(element: Pick<PageElement, 'role' | 'name'>): string {
  return element.name ? `${element.role} "${shorten(element.name, longestName)}"` : element.role;
}

/**
 * Gives every element its description: role and name; where several are equal, the row or heading that tells them
 * apart, else their position among the equals in reading order.
 */
export function describeElements(elements: readonly Omit<PageElement, 'description'>[]): PageElement[] {
  const descriptions = new Map<number, string>();
  const number = (group: readonly Omit<PageElement, 'description'>[], text: string): void => {
    group.forEach((element, index) => {
      descriptions.set(element.id, group.length === 1 ? text : `${text} (${ordinal(index + 1)})`);
    });
  };
  for (const [plain, group] of groupBy(elements, plainDescription)) {
    const contexts = groupBy(group, (element) => shorten(element.context, longestContext));
    if (group.length === 1 || contexts.size === 1 || contexts.has('')) {
      number(group, plain);
      continue;
    }
    for (const [context, equals] of contexts) number(equals, `${plain} in "${context}"`);
  }
  return elements.map((element) => ({ ...element, description: descriptions.get(element.id) ?? '' }));
}
