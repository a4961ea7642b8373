/** "Did you mean": the known names that lie closest to what was written. */

/** At most `count` names by edit distance; a name that begins with the text comes before others as far. */
export function nearestNames(text: string, known: readonly string[], count = 1): string[] {
  return known
    .map((name) => ({ name, far: editDistance(text, name) - (text !== '' && name.startsWith(text) ? 5 : 0) }))
    .sort((a, b) => a.far - b.far)
    .slice(0, count)
    .map(({ name }) => name);
}

/** Levenshtein's distance: insertions, deletions and replacements of one character. */
export function editDistance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, index) => index);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++) {
      const replaced = row[j - 1]! + (a[i - 1] === b[j - 1] ? 0 : 1);
      next[j] = Math.min(row[j]! + 1, next[j - 1]! + 1, replaced);
    }
    row = next;
  }
  return row[b.length]!;
}
