/**
 * Evaluation runs of the same tasks and seeds become one table: each run's selectors under labels that tell them
 * apart, all paired with one baseline.
 */
import type { EvaluatedEntry, Results } from '../evaluation/results.js';
import { type EvaluationRow, groupBy, successRate, summarizeSelectors } from '../evaluation/summary.js';
import type { FolderRun } from '../store/run.js';
import type { EpisodeRecord } from '../store/types.js';
import type { EntryRole, Evaluation } from './data.js';

/** One finished evaluation as read from disk. */
export interface EvaluatedRun {
  run: FolderRun;
  results: Results;
  episodes: EpisodeRecord[];
}

/** An entry's episodes, for examples. */
export interface LabelledEpisodes {
  label: string;
  role: EntryRole;
  episodes: { run: FolderRun; record: EpisodeRecord }[];
}

export interface Comparison {
  evaluation: Evaluation;
  entries: LabelledEpisodes[];
}

/** Groups runs by benchmark, tasks and seeds, in order of first appearance, and compares within each group. */
export function compareRuns(runs: readonly EvaluatedRun[], bootstrapSeed = 0): Comparison[] {
  const groups = groupBy(runs, ({ results }) =>
    JSON.stringify([results.benchmark, [...results.tasks].sort(), results.seeds]),
  );
  return [...groups.values()].map((group) => compareGroup(group, bootstrapSeed));
}

function compareGroup(runs: readonly EvaluatedRun[], bootstrapSeed: number): Comparison {
  const { results } = mainRun(runs);
  const entries = labelledEntries(runs);
  const baseline =
    entries.find((entry) => entry.role === 'baseline')?.label ?? entries[0]?.label ?? results.baseline;
  const rows = entries.flatMap(({ label, episodes }) => episodes.map(({ record }) => rowOf(label, record)));
  const summaries = summarizeSelectors(rows, { estimand: results.estimand, baseline, seed: bootstrapSeed });
  const byTask = groupBy(rows, (row) => row.task);
  return {
    entries,
    evaluation: {
      estimand: results.estimand,
      benchmark: results.benchmark,
      tasks: results.tasks,
      seeds: results.seeds,
      baseline,
      entries: entries.map(({ label, role, note }) => ({ label, role, note, summary: summaries[label]! })),
      byTask: [...byTask].map(([task, own]) => {
        const bySelector = groupBy(own, (row) => row.selector);
        return {
          task,
          rates: entries.map(({ label }) => {
            const rowsOfEntry = bySelector.get(label);
            return rowsOfEntry ? successRate(rowsOfEntry) : null;
          }),
        };
      }),
    },
  };
}

/** The run that the others stand beside: the first one with a model that is no control, whatever their order. */
function mainRun(runs: readonly EvaluatedRun[]): EvaluatedRun {
  return runs.find(({ results }) => results.models.some(({ control }) => control === null)) ?? runs[0]!;
}

/** An episode measured twice (a baseline that ran again beside a control) counts once: the first run's. */
function labelledEntries(runs: readonly EvaluatedRun[]): (LabelledEpisodes & { note: string })[] {
  const { policy: mainPolicy, baseline } = mainRun(runs).results;
  const found = new Map<string, LabelledEpisodes & { note: string; seen: Set<string> }>();
  for (const { run, results, episodes } of runs) {
    for (const { record, played } of playedEntries(results, episodes)) {
      const { policy, generation } = record.key;
      const model = results.models.find(({ id }) => id === generation);
      const control = model?.control ?? null;
      const isBaseline = played.label === baseline && policy === mainPolicy;
      const label = policy === mainPolicy ? played.label : `${played.label} of ${policy}`;
      const role = isBaseline ? 'baseline' : !model ? 'reference' : control ? 'control' : 'method';
      const note = [
        `policy ${policy}`,
        `selector ${played.selector}`,
        `N = ${results.n}`,
        ...(model ? [`model ${model.path}`] : []),
        ...(played.chosenMargin === null
          ? []
          : [`margin ${played.chosenMargin}, chosen on validation seeds`]),
        ...(control ? [`control: ${control}`] : []),
      ].join(', ');
      const entry = found.get(label) ?? { label, role, note, episodes: [], seen: new Set<string>() };
      found.set(label, entry);
      const key = JSON.stringify([
        model ? generation : '',
        record.key.task,
        record.key.seed,
        record.key.repeat,
      ]);
      if (entry.seen.has(key)) continue;
      entry.seen.add(key);
      entry.episodes.push({ run, record });
    }
  }
  return [...found.values()]
    .map(({ seen: _, ...entry }) => entry)
    .sort((a, b) => roleOrder.indexOf(a.role) - roleOrder.indexOf(b.role));
}

/** Each episode under every label it counts for: a chosen margin of 0 is the plain rule as well. */
function* playedEntries(
  { entries }: Results,
  episodes: readonly EpisodeRecord[],
): Generator<{ record: EpisodeRecord; played: EvaluatedEntry }> {
  for (const played of entries) {
    for (const record of episodes) {
      const { selector, generation } = record.key;
      if (selector === played.selector && generation === played.generation) yield { record, played };
    }
  }
}

const roleOrder: EntryRole[] = ['baseline', 'reference', 'method', 'control'];

/** The row of one episode under a label. */
export function rowOf(label: string, { key, reward, rawReward, steps, costs }: EpisodeRecord): EvaluationRow {
  return {
    selector: label,
    task: key.task,
    seed: key.seed,
    repeat: key.repeat,
    training: key.generation === 'none' ? '' : key.generation,
    success: reward > 0,
    rawReward,
    steps,
    costs: costs ?? null,
  };
}
