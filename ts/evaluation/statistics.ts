/**
 * The statistics behind every printed figure: rates, paired differences, bootstrap intervals, Holm's correction.
 * Pure functions; equal input and seed give equal output on every machine.
 *
 * Two questions need two intervals (method: Efron & Tibshirani, An Introduction to the Bootstrap, 1993, ch. 8
 * and 13; crossed factors: Owen, The pigeonhole bootstrap, 2007, arXiv 0712.1111):
 * - unseen seeds: would the result hold on other seeds of these same tasks? Tasks are fixed; episodes are
 *   resampled within their task ({@link stratifiedInterval}).
 * - unseen tasks: would it hold on other tasks? Tasks are drawn as clusters, then episodes within each drawn
 *   task ({@link clusteredInterval}). With fewer than about 20 tasks such an interval is somewhat too short.
 * Several trainings are resampled in both, as a factor crossed with the episodes: every training met the same
 * episodes, so one draw of trainings goes with one draw of episodes.
 */
import { hashUniform, type RandomKey } from '../core/random.js';

/** One number measured once: a success (0 or 1), or a paired difference (-1, 0 or 1). */
export interface Sample {
  task: string;
  /** What makes it the same episode in every training, e.g. seed and repeat. Unique within the task. */
  episode: string;
  /** Which training produced the model; equal for all samples where there is one or none. */
  training: string;
  value: number;
}

export interface BootstrapOptions {
  /** Number of resamples, default 10,000: the ends of a 95 % interval then move by about 0.02 of its width. */
  resamples?: number;
  /** Two-sided confidence in (0, 1), default 0.95. */
  confidence?: number;
  /** Seed of the draws, default 0. */
  seed?: number;
}

/** Lower and upper bound, both in the unit of the values. */
export type Interval = readonly [low: number, high: number];

export interface Rate {
  count: number;
  mean: number;
  /** Sample standard deviation (n - 1) over sqrt(n); null below two samples. */
  standardError: number | null;
}

/** Mean and standard error of the mean. For 0/1 values this is the binomial standard error with n - 1. */
export function meanWithError(values: readonly number[]): Rate {
  const count = values.length;
  const mean = average(values);
  if (count < 2) return { count, mean, standardError: null };
  const squares = values.reduce((sum, value) => sum + (value - mean) ** 2, 0);
  return { count, mean, standardError: Math.sqrt(squares / (count - 1) / count) };
}

/** Arithmetic mean; NaN for no values. */
export function average(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}

/**
 * Wilson's score interval for a rate (Wilson 1927): holds at 0 and 1 and for small n, where the normal
 * approximation does not. Ignores tasks; for tables that compare selectors use the bootstrap.
 * @param z normal quantile, default 1.96 for 95 %
 */
export function wilsonInterval(successes: number, count: number, z = 1.959963984540054): Interval {
  if (count === 0) return [0, 1];
  const rate = successes / count;
  const scale = 1 + z ** 2 / count;
  const centre = (rate + z ** 2 / (2 * count)) / scale;
  const half = (z / scale) * Math.sqrt((rate * (1 - rate)) / count + z ** 2 / (4 * count ** 2));
  return [Math.max(0, centre - half), Math.min(1, centre + half)];
}

/**
 * Exact two-sided McNemar test of paired 0/1 outcomes: the binomial test on the discordant pairs. Takes all pairs
 * as independent, so it speaks about unseen seeds only.
 * @param wins pairs in which only the first succeeded
 * @param losses pairs in which only the second succeeded
 */
export function mcnemarExact(wins: number, losses: number): number {
  const discordant = wins + losses;
  // Sum of C(n, k) / 2^n in logarithms: 2^n leaves the doubles above n = 1023.
  let logTerm = -discordant * Math.LN2;
  let tail = 0;
  for (let k = 0; k <= Math.min(wins, losses); k++) {
    tail += Math.exp(logTerm);
    logTerm += Math.log(discordant - k) - Math.log(k + 1);
  }
  return Math.min(1, 2 * tail);
}

/**
 * Holm's step-down adjustment (Holm 1979): reject every hypothesis whose adjusted p is below alpha, and the chance
 * of any false rejection stays below alpha. Order of the result is that of the input.
 */
export function holmAdjust(pValues: readonly number[]): number[] {
  const order = pValues.map((_, index) => index).sort((a, b) => at(pValues, a) - at(pValues, b));
  const adjusted = new Array<number>(pValues.length);
  let running = 0;
  order.forEach((index, rank) => {
    running = Math.max(running, Math.min(1, (pValues.length - rank) * at(pValues, index)));
    adjusted[index] = running;
  });
  return adjusted;
}

/** Percentile bootstrap of the mean with tasks fixed: the interval for unseen seeds of these tasks. */
export function stratifiedInterval(samples: readonly Sample[], options: BootstrapOptions = {}): Interval {
  return percentileInterval(bootstrapMeans(samples, 'stratified', options), options.confidence);
}

/** Percentile bootstrap of the mean with tasks drawn as clusters: the interval for unseen tasks. */
export function clusteredInterval(samples: readonly Sample[], options: BootstrapOptions = {}): Interval {
  return percentileInterval(bootstrapMeans(samples, 'clustered', options), options.confidence);
}

/**
 * Two-sided bootstrap p-value of "the mean is 0": twice the smaller share of resampled means on either side of
 * zero, counting zero on both sides and one extra resample (Davison & Hinkley 1997, section 4.2), so never 0.
 */
export function bootstrapPValue(
  samples: readonly Sample[],
  scheme: 'stratified' | 'clustered',
  options: BootstrapOptions = {},
): number {
  const means = bootstrapMeans(samples, scheme, options);
  let below = 1;
  let above = 1;
  for (const mean of means) {
    if (mean <= 0) below++;
    if (mean >= 0) above++;
  }
  return Math.min(1, (2 * Math.min(below, above)) / (means.length + 1));
}

/**
 * Means of all resamples, unsorted. Every sample weighs the same, so a task with more episodes weighs more.
 * No samples: an empty array, and intervals of NaN.
 */
export function bootstrapMeans(
  samples: readonly Sample[],
  scheme: 'stratified' | 'clustered',
  { resamples = 10_000, seed = 0 }: BootstrapOptions = {},
): Float64Array {
  if (samples.length === 0) return new Float64Array(0);
  const { tasks, trainings } = crossTable(samples);
  const next = generator(['bootstrap', scheme, seed]);
  const draw = (bound: number): number => Math.floor(next() * bound);
  const means = new Float64Array(resamples);
  for (let resample = 0; resample < resamples; ) {
    const weights = new Float64Array(trainings);
    for (let k = 0; k < trainings; k++) weights[draw(trainings)]! += 1;
    let sum = 0;
    let count = 0;
    for (let t = 0; t < tasks.length; t++) {
      const episodes = at(tasks, scheme === 'clustered' ? draw(tasks.length) : t);
      for (let e = 0; e < episodes.length; e++) {
        const cell = at(episodes, draw(episodes.length));
        for (let k = 0; k < trainings; k++) {
          sum += weights[k]! * cell.sums[k]!;
          count += weights[k]! * cell.counts[k]!;
        }
      }
    }
    // With holes in the table a resample can be empty; it says nothing and is drawn again.
    if (count > 0) means[resample++] = sum / count;
  }
  return means;
}

/** Ends of the central interval, by linear interpolation between order statistics (Hyndman & Fan type 7). */
export function percentileInterval(means: Float64Array, confidence = 0.95): Interval {
  const sorted = means.slice().sort();
  const tail = (1 - confidence) / 2;
  return [quantile(sorted, tail), quantile(sorted, 1 - tail)];
}

/** Quantile of ascending values, type 7; NaN for none. */
export function quantile(sorted: ArrayLike<number>, probability: number): number {
  if (sorted.length === 0) return Number.NaN;
  const position = probability * (sorted.length - 1);
  const low = Math.floor(position);
  const high = Math.min(low + 1, sorted.length - 1);
  return sorted[low]! + (position - low) * (sorted[high]! - sorted[low]!);
}

interface Cell {
  /** [trainings] sums and counts of the episode's samples. */
  sums: Float64Array;
  counts: Float64Array;
}

/** The samples as task x episode x training. Order is that of first appearance, so the draws are reproducible. */
function crossTable(samples: readonly Sample[]): { tasks: Cell[][]; trainings: number } {
  const trainings = new Map<string, number>();
  for (const { training } of samples) {
    if (!trainings.has(training)) trainings.set(training, trainings.size);
  }
  const tasks = new Map<string, Map<string, Cell>>();
  for (const { task, episode, training, value } of samples) {
    const episodes = tasks.get(task) ?? new Map<string, Cell>();
    tasks.set(task, episodes);
    const cell = episodes.get(episode) ?? {
      sums: new Float64Array(trainings.size),
      counts: new Float64Array(trainings.size),
    };
    episodes.set(episode, cell);
    const column = trainings.get(training)!;
    cell.sums[column]! += value;
    cell.counts[column]! += 1;
  }
  return { tasks: [...tasks.values()].map((episodes) => [...episodes.values()]), trainings: trainings.size };
}

/**
 * sfc32, the small fast counter generator of C. Doty-Humphrey's PractRand (public domain), keyed by a hash.
 * core/random hashes every draw; a bootstrap needs millions.
 */
function generator(key: RandomKey): () => number {
  const word = (index: number): number => Math.floor(hashUniform([...key, index]) * 2 ** 32) | 0;
  let a = word(0);
  let b = word(1);
  let c = word(2);
  let counter = 1;
  const next = (): number => {
    const out = (((a + b) | 0) + counter) | 0;
    counter = (counter + 1) | 0;
    a = b ^ (b >>> 9);
    b = (c + (c << 3)) | 0;
    c = (((c << 21) | (c >>> 11)) + out) | 0;
    return (out >>> 0) / 2 ** 32;
  };
  for (let warmUp = 0; warmUp < 12; warmUp++) next();
  return next;
}

function at<T>(values: readonly T[], index: number): T {
  return values[index] as T;
}
