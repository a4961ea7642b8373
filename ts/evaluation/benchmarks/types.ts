/** A benchmark: names of tasks, and how one task instance begins in a browser session and is judged. */

import type { BrowserSession } from '../../agent/browser/session.js';
import type { Episode } from '../../agent/types.js';
import { BoqError } from '../../core/errors.js';

/** Implement it to collect and evaluate on tasks of your own. */
export interface Benchmark {
  readonly name: string;
  readonly defaults: {
    viewport: { width: number; height: number; deviceScaleFactor: number };
    maxSteps: number;
  };
  /**
   * Task names for what the user wrote: names and @sets, in that order, each task once.
   * @throws BoqError BOQ_TASK_UNKNOWN with the nearest names.
   */
  resolveTasks(spec: readonly string[]): string[];
  /**
   * Prepares the session for one task instance; the first observation shows its start.
   * @throws BoqError BOQ_BROWSER where the page does not come up.
   */
  openEpisode(session: BrowserSession, task: string, seed: number, signal?: AbortSignal): Promise<Episode>;
}

function distance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, index) => index);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++) {
      next[j] = Math.min(
        (row[j] ?? 0) + 1,
        (next[j - 1] ?? 0) + 1,
        (row[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1),
      );
    }
    row = next;
  }
  return row[b.length] ?? 0;
}

/** Expands @sets and checks names. */
export function resolveNames(
  benchmark: string,
  spec: readonly string[],
  tasks: readonly string[],
  sets: Readonly<Record<string, readonly string[]>>,
): string[] {
  const known = new Set(tasks);
  const found = new Set<string>();
  for (const entry of spec
    .flatMap((text) => text.split(','))
    .map((text) => text.trim())
    .filter(Boolean)) {
    const set = sets[entry];
    if (set) for (const task of set) found.add(task);
    else if (known.has(entry)) found.add(entry);
    else {
      const names = [...tasks, ...Object.keys(sets)];
      const nearest = names
        .map((name) => ({ name, far: distance(entry, name) - (name.startsWith(entry) ? 5 : 0) }))
        .sort((a, b) => a.far - b.far)
        .slice(0, 3)
        .map(({ name }) => name);
      throw new BoqError(
        'BOQ_TASK_UNKNOWN',
        `expected a task or set of ${benchmark}, got "${entry}"; nearest: ${nearest.join(', ')}`,
        { details: { task: entry, nearest } },
      );
    }
  }
  if (found.size === 0) {
    throw new BoqError(
      'BOQ_TASK_UNKNOWN',
      `expected at least one task or set of ${benchmark}, such as ${tasks[0]}`,
    );
  }
  return [...found];
}
