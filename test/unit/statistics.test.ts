import { expect } from 'chai';
import {
  average,
  bootstrapMeans,
  bootstrapPValue,
  clusteredInterval,
  holmAdjust,
  mcnemarExact,
  meanWithError,
  quantile,
  type Sample,
  stratifiedInterval,
  wilsonInterval,
} from '../../ts/evaluation/statistics.js';

/** values[task][episode], or values[task][episode][training]. */
function samplesOf(values: (number | number[])[][]): Sample[] {
  return values.flatMap((episodes, task) =>
    episodes.flatMap((cell, episode) =>
      [cell].flat().map((value, training) => ({
        task: `task-${task}`,
        episode: `${episode}`,
        training: `${training}`,
        value,
      })),
    ),
  );
}

/** Every index vector of `length` draws below `bound`: all resamples, each equally likely. */
function allDraws(bound: number, length: number): number[][] {
  if (length === 0) return [[]];
  return allDraws(bound, length - 1).flatMap((head) => Array.from({ length: bound }, (_, i) => [...head, i]));
}

/** Share of each resampled mean, by brute force: the truth that the random draws approximate. */
function exactDistribution(values: number[][], scheme: 'stratified' | 'clustered'): Map<string, number> {
  const taskDraws =
    scheme === 'clustered' ? allDraws(values.length, values.length) : [values.map((_, index) => index)];
  const distribution = new Map<string, number>();
  for (const tasks of taskDraws) {
    let sums = [0];
    for (const task of tasks) {
      const episodes = values[task]!;
      const taskSums = allDraws(episodes.length, episodes.length).map((draw) =>
        draw.reduce((sum, index) => sum + episodes[index]!, 0),
      );
      sums = sums.flatMap((sum) => taskSums.map((taskSum) => sum + taskSum));
    }
    const count = tasks.reduce((total, task) => total + values[task]!.length, 0);
    for (const [mean, share] of shares(sums.map((sum) => sum / count))) {
      distribution.set(mean, (distribution.get(mean) ?? 0) + share / taskDraws.length);
    }
  }
  return distribution;
}

function shares(means: Iterable<number>): Map<string, number> {
  const all = [...means];
  const counts = new Map<string, number>();
  for (const mean of all) counts.set(mean.toFixed(9), (counts.get(mean.toFixed(9)) ?? 0) + 1 / all.length);
  return counts;
}

function variance(values: readonly number[]): number {
  const mean = average(values);
  return average(values.map((value) => (value - mean) ** 2));
}

describe('rates', () => {
  it('gives the binomial standard error with n - 1', () => {
    const rate = meanWithError([1, 1, 1, 0, 0]);
    expect(rate.mean).to.equal(0.6);
    expect(rate.standardError).to.be.closeTo(Math.sqrt((0.6 * 0.4) / 4), 1e-12);
  });

  it('has no standard error for fewer than two samples', () => {
    expect(meanWithError([1])).to.deep.equal({ count: 1, mean: 1, standardError: null });
    expect(meanWithError([]).mean).to.be.NaN;
  });

  it("agrees with Wilson's interval as published for 8 of 10, and stays in [0, 1] at the ends", () => {
    const [low, high] = wilsonInterval(8, 10);
    expect(low).to.be.closeTo(0.4902, 5e-5);
    expect(high).to.be.closeTo(0.9433, 5e-5);
    expect(wilsonInterval(0, 10)[0]).to.equal(0);
    expect(wilsonInterval(10, 10)[1]).to.be.closeTo(1, 1e-12);
    expect(wilsonInterval(0, 0)).to.deep.equal([0, 1]);
  });
});

describe('tests and corrections', () => {
  it('computes the exact McNemar test from binomial coefficients', () => {
    expect(mcnemarExact(1, 9)).to.be.closeTo((2 * (1 + 10)) / 1024, 1e-12);
    expect(mcnemarExact(9, 1)).to.be.closeTo(mcnemarExact(1, 9), 1e-12);
    expect(mcnemarExact(0, 0)).to.equal(1);
    expect(mcnemarExact(5, 5)).to.equal(1);
  });

  it('keeps the McNemar test finite for thousands of discordant pairs', () => {
    // Normal approximation with continuity correction: z = (|b - c| - 1) / sqrt(b + c) = 3.98.
    expect(mcnemarExact(5200, 4800)).to.be.closeTo(6.5e-5, 0.5e-5);
  });

  it('adjusts by Holm, monotonely and in input order', () => {
    const adjusted = holmAdjust([0.01, 0.04, 0.03, 0.005]);
    [0.03, 0.06, 0.06, 0.02].forEach((value, index) => {
      expect(adjusted[index]).to.be.closeTo(value, 1e-12);
    });
    expect(holmAdjust([0.9, 0.8])).to.deep.equal([1, 1]);
    expect(holmAdjust([])).to.deep.equal([]);
  });

  it('gives a p-value near 1 for no effect and the smallest possible for a constant effect', () => {
    expect(bootstrapPValue(samplesOf([[1, -1, 1, -1]]), 'stratified')).to.be.greaterThan(0.9);
    expect(bootstrapPValue(samplesOf([[1, 1, 1]]), 'stratified', { resamples: 999 })).to.equal(0.002);
  });
});

describe('quantile', () => {
  it('interpolates between order statistics', () => {
    expect(quantile([1, 2, 3, 4], 0.5)).to.equal(2.5);
    expect(quantile([1, 2, 3, 4], 0)).to.equal(1);
    expect(quantile([1, 2, 3, 4], 1)).to.equal(4);
    expect(quantile([], 0.5)).to.be.NaN;
  });
});

describe('bootstrap', () => {
  const values = [
    [0, 1],
    [1, 1, -1],
  ];

  for (const scheme of ['stratified', 'clustered'] as const) {
    it(`draws ${scheme} resamples as often as full enumeration says`, () => {
      const exact = exactDistribution(values, scheme);
      const drawn = shares(bootstrapMeans(samplesOf(values), scheme, { resamples: 40_000, seed: 3 }));
      expect([...drawn.keys()].every((mean) => exact.has(mean))).to.equal(true);
      for (const [mean, share] of exact) {
        // Four standard errors of a share at 40,000 draws.
        const tolerance = 4 * Math.sqrt((share * (1 - share)) / 40_000);
        expect(drawn.get(mean) ?? 0, `share of ${mean}`).to.be.closeTo(share, tolerance + 1e-12);
      }
    });
  }

  it('matches the closed-form spread within tasks, and between them when tasks are drawn', () => {
    const tasks = [0.9, 0.2, 0.5, 0.7].map((rate) =>
      Array.from({ length: 40 }, (_, i) => Number(i < rate * 40)),
    );
    const within = average(tasks.map(variance)) / 40;
    const between = variance(tasks.map(average));
    const spread = (scheme: 'stratified' | 'clustered') =>
      variance([...bootstrapMeans(samplesOf(tasks), scheme, { resamples: 20_000 })]);
    expect(spread('stratified') / (within / 4)).to.be.closeTo(1, 0.05);
    expect(spread('clustered') / ((within + between) / 4)).to.be.closeTo(1, 0.05);
  });

  it('resamples trainings even when episodes leave no doubt', () => {
    // Every episode succeeds under training 0 and fails under training 1: all spread comes from the trainings.
    const means = bootstrapMeans(
      samplesOf([
        [
          [1, 0],
          [1, 0],
        ],
      ]),
      'stratified',
      { resamples: 40_000 },
    );
    const drawn = shares(means);
    expect(drawn.get((0).toFixed(9))).to.be.closeTo(0.25, 0.01);
    expect(drawn.get((0.5).toFixed(9))).to.be.closeTo(0.5, 0.01);
    expect(drawn.get((1).toFixed(9))).to.be.closeTo(0.25, 0.01);
  });

  it('keeps one draw of episodes for all trainings', () => {
    // Both trainings agree on every episode, so a second training must not narrow the interval.
    const single = samplesOf([[0, 1, 0, 1, 1, 0, 1, 1]]);
    const double = samplesOf([[0, 1, 0, 1, 1, 0, 1, 1].map((value) => [value, value])]);
    const width = ([low, high]: readonly [number, number]) => high - low;
    expect(width(stratifiedInterval(double, { resamples: 20_000 }))).to.be.closeTo(
      width(stratifiedInterval(single, { resamples: 20_000 })),
      0.02,
    );
  });

  it('is wider across tasks than across seeds when tasks disagree', () => {
    const samples = samplesOf([Array(20).fill(1), Array(20).fill(0), Array(20).fill(0)]);
    expect(stratifiedInterval(samples)).to.deep.equal([1 / 3, 1 / 3]);
    const [low, high] = clusteredInterval(samples);
    expect(low).to.equal(0);
    expect(high).to.equal(1);
  });

  it('depends on the seed alone, not on when it runs', () => {
    const samples = samplesOf(values);
    expect(stratifiedInterval(samples, { seed: 5 })).to.deep.equal(stratifiedInterval(samples, { seed: 5 }));
    expect([...bootstrapMeans(samples, 'stratified', { seed: 5 })]).to.not.deep.equal([
      ...bootstrapMeans(samples, 'stratified', { seed: 6 }),
    ]);
  });

  it('answers NaN for no samples and ignores empty resamples of a table with holes', () => {
    expect(stratifiedInterval([])).to.deep.equal([Number.NaN, Number.NaN]);
    const holes: Sample[] = [
      { task: 'a', episode: '0', training: 'x', value: 1 },
      { task: 'b', episode: '0', training: 'y', value: 1 },
    ];
    expect(clusteredInterval(holes, { resamples: 500 })).to.deep.equal([1, 1]);
  });
});
