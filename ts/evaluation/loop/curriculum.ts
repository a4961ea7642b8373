/**
 * Which tasks a cycle plays: those whose outcome the last model is least sure of, by V of their first states. A task
 * that is won or lost for certain teaches little.
 */
import type { StoredEpisode } from '../../store/run.js';

/** Mean V of the first step by task, over the episodes that were scored; in units of V, 0 to 1 for rewards of 0 and 1. */
export type StartValues = Readonly<Record<string, number>>;

/** Reads them from validation episodes; empty where none was scored. */
export async function readStartValues(episodes: AsyncIterable<StoredEpisode>): Promise<StartValues> {
  const values = new Map<string, number[]>();
  for await (const { record, steps } of episodes) {
    const v = steps[0]?.scores?.v;
    if (v === undefined) continue;
    const { task } = record.key;
    values.set(task, [...(values.get(task) ?? []), v]);
  }
  const mean = (all: readonly number[]): number => all.reduce((sum, v) => sum + v, 0) / all.length;
  return Object.fromEntries([...values].map(([task, all]) => [task, mean(all)]));
}

/**
 * The share of the tasks, at least one, whose value is nearest to a half, in the order of `tasks`. Tasks without a
 * value count as nearest: nothing is known of them.
 */
export function uncertainTasks(tasks: readonly string[], values: StartValues, share: number): string[] {
  const distance = (task: string): number => Math.abs((values[task] ?? 0.5) - 0.5);
  const count = Math.max(1, Math.ceil(share * tasks.length));
  const chosen = new Set([...tasks].sort((a, b) => distance(a) - distance(b)).slice(0, count));
  return tasks.filter((task) => chosen.has(task));
}
