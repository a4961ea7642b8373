/**
 * Which episodes a reader should see: where the values changed the outcome, for better and for worse, from as many
 * tasks as possible; chosen by rule, never by hand.
 */
import type { FolderRun } from '../store/run.js';
import type { EpisodeRecord } from '../store/types.js';
import type { LabelledEpisodes } from './compare.js';

export interface ChosenExample {
  run: FolderRun;
  record: EpisodeRecord;
  reason: string;
  baseline: { run: FolderRun; record: EpisodeRecord } | null;
}

/** Wins get two thirds of the places, losses the rest; both in task order, one a task before a second one. */
export function selectExamples(
  method: LabelledEpisodes,
  baseline: LabelledEpisodes,
  count: number,
): ChosenExample[] {
  const keyOf = ({ key }: EpisodeRecord) => JSON.stringify([key.task, key.seed, key.repeat]);
  const others = new Map(baseline.episodes.map((episode) => [keyOf(episode.record), episode]));
  const flips = (change: number, reason: string): ChosenExample[] =>
    spreadOverTasks(
      method.episodes.flatMap(({ run, record }) => {
        const other = others.get(keyOf(record));
        if (!other || Math.sign(record.reward - other.record.reward) !== change) return [];
        return [{ run, record, reason, baseline: other }];
      }),
    );
  const wins = flips(1, `${method.label} succeeded where ${baseline.label} failed.`);
  const losses = flips(-1, `${method.label} failed where ${baseline.label} succeeded.`);
  const shownLosses = losses.slice(0, Math.max(Math.floor(count / 3), count - wins.length));
  return [...wins.slice(0, count - shownLosses.length), ...shownLosses];
}

/** Round-robin over tasks, each task's episodes by seed. */
function spreadOverTasks(examples: readonly ChosenExample[]): ChosenExample[] {
  const sorted = [...examples].sort(
    (a, b) => compare(a.record.key.task, b.record.key.task) || a.record.key.seed - b.record.key.seed,
  );
  const rank = new Map<string, number>();
  const ranked = sorted.map((example) => {
    const round = rank.get(example.record.key.task) ?? 0;
    rank.set(example.record.key.task, round + 1);
    return { example, round };
  });
  return ranked.sort((a, b) => a.round - b.round).map(({ example }) => example);
}

function compare(a: string, b: string): number {
  return a < b ? -1 : Number(a > b);
}
