/**
 * From one row an episode to the block of results.json that compares selectors: success, standard errors, steps,
 * and the paired difference to the baseline with its interval.
 */
import { BoqError } from '../core/errors.js';
import type { EpisodeCosts } from '../store/types.js';
import {
  average,
  type BootstrapOptions,
  bootstrapPValue,
  clusteredInterval,
  type Interval,
  meanWithError,
  type Sample,
  stratifiedInterval,
} from './statistics.js';

/** One evaluated episode. Rows of one selector are paired with the baseline's by task, seed and repeat. */
export interface EvaluationRow {
  selector: string;
  task: string;
  seed: number;
  repeat: number;
  /** Which training made the model that chose; '' for selectors without a model. */
  training: string;
  success: boolean;
  rawReward: number | null;
  steps: number;
  /** null where the episode was recorded without them. */
  costs?: EpisodeCosts | null;
}

/** What the interval speaks about; see statistics.ts. */
export type Estimand = 'unseen-seeds' | 'unseen-tasks';

/** One selector's row: success, steps, and its paired difference to the baseline. */
export interface SelectorSummary {
  episodes: number;
  successes: number;
  successRate: number;
  /** Share of episodes whose raw score is the full 1; null where the benchmark gives no raw score. */
  fullScoreRate: number | null;
  /** Over episodes, as if independent; null below two. */
  standardErrorEpisodes: number | null;
  /** Over runs: one run is one repeat of one training; null below two runs. */
  standardErrorRuns: number | null;
  /**
   * Share of the outcomes' variance that lies between repeats of one instance: 0 where every task and seed always ends
   * alike, 1 where each repeat might be any episode. null without repeats, or where all episodes end alike.
   */
  repeatSpread: number | null;
  /** null where nothing succeeded. */
  meanStepsOnSuccess: number | null;
  /** Success rate minus the baseline's on the same episodes; null for the baseline itself. */
  difference: number | null;
  /** 95 % interval of `difference` for the estimand of this evaluation. */
  interval: Interval | null;
  /** The same difference read both ways; `interval` is one of the two. */
  intervals: { stratified: Interval; clustered: Interval } | null;
  /** Two-sided bootstrap p-value for the estimand, before any correction. */
  pValue: number | null;
  pairs: number;
  /** Pairs in which only this selector, or only the baseline, succeeded. */
  wins: number;
  losses: number;
  /** Means of an episode; null where some episode was recorded without them. */
  costs: EpisodeCosts | null;
}

export interface SummaryOptions extends BootstrapOptions {
  estimand: Estimand;
  /** Selector that the differences refer to; default 'prompting'. */
  baseline?: string;
}

/**
 * Summaries by selector, in order of first appearance. Rows without a baseline row of the same task, seed and
 * repeat count in the rates but not in the difference.
 * @throws BOQ_DATA_INVALID where a selector holds one episode twice for one training
 */
export function summarizeSelectors(
  rows: readonly EvaluationRow[],
  options: SummaryOptions,
): Record<string, SelectorSummary> {
  const baseline = options.baseline ?? 'prompting';
  const bySelector = groupBy(rows, (row) => row.selector);
  const reference = bySelector.get(baseline) ?? [];
  const summaries: Record<string, SelectorSummary> = {};
  for (const [selector, own] of bySelector) {
    const pairs = selector === baseline ? [] : pairedDifferences(own, reference);
    summaries[selector] = { ...describeRates(own), ...describePairs(pairs, options) };
  }
  return summaries;
}

/**
 * Success of `rows` minus success of `reference`, episode by episode. A reference without trainings is paired with
 * every training of `rows`; otherwise trainings must match.
 * @throws BOQ_DATA_INVALID where either side holds one episode twice for one training
 */
export function pairedDifferences(
  rows: readonly EvaluationRow[],
  reference: readonly EvaluationRow[],
): Sample[] {
  const others = uniqueByEpisode(reference);
  uniqueByEpisode(rows);
  const samples: Sample[] = [];
  for (const row of rows) {
    const other = others.get(episodeKey(row, row.training)) ?? others.get(episodeKey(row, ''));
    if (!other) continue;
    samples.push({
      task: row.task,
      episode: `${row.seed}/${row.repeat}`,
      training: row.training,
      value: Number(row.success) - Number(other.success),
    });
  }
  // Resampling draws by position: the same pairs give the same interval, in whatever order they were read.
  const place = ({ task, episode, training }: Sample): string => JSON.stringify([task, episode, training]);
  return samples.sort((a, b) => (place(a) < place(b) ? -1 : 1));
}

/** Share of successful rows; NaN for none. */
export function successRate(rows: readonly EvaluationRow[]): number {
  return average(rows.map((row) => Number(row.success)));
}

/** Groups in order of first appearance. */
export function groupBy<T>(items: readonly T[], key: (item: T) => string): Map<string, T[]> {
  const groups = new Map<string, T[]>();
  for (const item of items) {
    const group = groups.get(key(item));
    if (group) group.push(item);
    else groups.set(key(item), [item]);
  }
  return groups;
}

function describeRates(
  rows: readonly EvaluationRow[],
): Pick<
  SelectorSummary,
  | 'episodes'
  | 'successes'
  | 'successRate'
  | 'fullScoreRate'
  | 'standardErrorEpisodes'
  | 'standardErrorRuns'
  | 'repeatSpread'
  | 'meanStepsOnSuccess'
  | 'costs'
> {
  const rate = meanWithError(rows.map((row) => Number(row.success)));
  const runs = groupBy(rows, (row) => `${row.training}/${row.repeat}`).values();
  const succeeded = rows.filter((row) => row.success);
  // An episode that a limit cut off has no raw score, and surely not a full one.
  const scored = rows.some((row) => row.rawReward !== null);
  return {
    episodes: rate.count,
    successes: succeeded.length,
    successRate: rate.mean,
    fullScoreRate: scored ? average(rows.map((row) => Number(row.rawReward === 1))) : null,
    standardErrorEpisodes: rate.standardError,
    standardErrorRuns: meanWithError(Array.from(runs, successRate)).standardError,
    repeatSpread: repeatSpread(rows),
    meanStepsOnSuccess: succeeded.length > 0 ? average(succeeded.map((row) => row.steps)) : null,
    costs: meanCosts(rows),
  };
}

function repeatSpread(rows: readonly EvaluationRow[]): number | null {
  const instances = groupBy(rows, ({ training, task, seed }) => JSON.stringify([training, task, seed]));
  const repeated = [...instances.values()].filter((instance) => instance.length > 1);
  const rate = successRate(repeated.flat());
  if (repeated.length === 0 || rate === 0 || rate === 1) return null;
  const within = repeated.map((instance) => {
    const own = successRate(instance);
    return (own * (1 - own) * instance.length) / (instance.length - 1);
  });
  return average(within) / (rate * (1 - rate));
}

function meanCosts(rows: readonly EvaluationRow[]): EpisodeCosts | null {
  const all = rows.map((row) => row.costs ?? null);
  if (!all.every((costs) => costs !== null)) return null;
  const mean = (name: keyof EpisodeCosts): number => average(all.map((costs) => costs[name]));
  return {
    proposals: mean('proposals'),
    steps: mean('steps'),
    embeddings: mean('embeddings'),
    starts: mean('starts'),
  };
}

function describePairs(
  pairs: readonly Sample[],
  options: SummaryOptions,
): Pick<SelectorSummary, 'difference' | 'interval' | 'intervals' | 'pValue' | 'pairs' | 'wins' | 'losses'> {
  const wins = pairs.filter((pair) => pair.value > 0).length;
  const losses = pairs.filter((pair) => pair.value < 0).length;
  if (pairs.length === 0) {
    return { difference: null, interval: null, intervals: null, pValue: null, pairs: 0, wins, losses };
  }
  const intervals = {
    stratified: stratifiedInterval(pairs, options),
    clustered: clusteredInterval(pairs, options),
  };
  const scheme = options.estimand === 'unseen-seeds' ? 'stratified' : 'clustered';
  return {
    difference: average(pairs.map((pair) => pair.value)),
    interval: intervals[scheme],
    intervals,
    pValue: bootstrapPValue(pairs, scheme, options),
    pairs: pairs.length,
    wins,
    losses,
  };
}

function episodeKey(row: EvaluationRow, training: string): string {
  return JSON.stringify([training, row.task, row.seed, row.repeat]);
}

function uniqueByEpisode(rows: readonly EvaluationRow[]): Map<string, EvaluationRow> {
  const seen = new Map<string, EvaluationRow>();
  for (const row of rows) {
    const key = episodeKey(row, row.training);
    if (seen.has(key)) {
      throw new BoqError(
        'BOQ_DATA_INVALID',
        `Expected each episode once per selector and training, but "${row.selector}" has ${row.task} ` +
          `seed ${row.seed} repeat ${row.repeat} twice: pass each run once.`,
      );
    }
    seen.set(key, row);
  }
  return seen;
}
