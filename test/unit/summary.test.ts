import { expect } from 'chai';
import { isBoqError } from '../../ts/core/errors.js';
import { type EvaluationRow, pairedDifferences, summarizeSelectors } from '../../ts/evaluation/summary.js';

function rows(selector: string, successes: number[], changes: Partial<EvaluationRow> = {}): EvaluationRow[] {
  return successes.map((success, seed) => ({
    selector,
    task: `task-${seed % 2}`,
    seed,
    repeat: 0,
    training: '',
    success: success === 1,
    rawReward: success * 0.5,
    steps: seed + 1,
    ...changes,
  }));
}

describe('selector summaries', () => {
  const prompting = rows('prompting', [1, 0, 0, 0]);
  const best = rows('best-of-q', [1, 1, 0, 1], { training: 'm0' });

  it('counts, averages and pairs with the baseline', () => {
    const summary = summarizeSelectors([...prompting, ...best], { estimand: 'unseen-seeds' });
    expect(summary['best-of-q']).to.include({
      episodes: 4,
      successes: 3,
      successRate: 0.75,
      fullScoreRate: 0,
      standardErrorRuns: null,
      difference: 0.5,
      pairs: 4,
      wins: 2,
      losses: 0,
    });
    expect(summary['best-of-q']!.meanStepsOnSuccess).to.be.closeTo((1 + 2 + 4) / 3, 1e-12);
    expect(summary.prompting).to.include({ difference: null, interval: null, pairs: 0 });
  });

  it('reports the interval of the estimand asked for, and both beside it', () => {
    const all = [...prompting, ...best];
    const seeds = summarizeSelectors(all, { estimand: 'unseen-seeds' })['best-of-q']!;
    const tasks = summarizeSelectors(all, { estimand: 'unseen-tasks' })['best-of-q']!;
    expect(seeds.interval).to.deep.equal(seeds.intervals!.stratified);
    expect(tasks.interval).to.deep.equal(tasks.intervals!.clustered);
    expect(seeds.intervals).to.deep.equal(tasks.intervals);
  });

  it('pairs in one order, so that resampling the same episodes gives the same interval', () => {
    const other = rows('other', [0, 1, 1, 0]);
    const pairs = pairedDifferences(other, prompting);
    expect(pairedDifferences([...other].reverse(), prompting)).to.deep.equal(pairs);
    expect(pairs.map(({ episode }) => episode)).to.deep.equal(['0/0', '2/0', '1/0', '3/0']);
  });

  it('takes the standard error over runs from repeats and trainings', () => {
    const second = rows('best-of-q', [0, 0, 0, 1], { training: 'm1' });
    const summary = summarizeSelectors([...best, ...second], { estimand: 'unseen-seeds' })['best-of-q']!;
    // Runs reach 0.75 and 0.25: standard deviation 0.3536 over sqrt 2.
    expect(summary.standardErrorRuns).to.be.closeTo(0.25, 1e-12);
  });

  it('tells how much of the variance lies between repeats of one instance', () => {
    const spread = (outcomes: number[][]): number | null => {
      const all = outcomes.flatMap((own, seed) =>
        own.map((success, repeat) => ({ ...rows('random', [success])[0]!, seed, repeat })),
      );
      return summarizeSelectors(all, { estimand: 'unseen-seeds' }).random!.repeatSpread;
    };
    expect(
      spread([
        [1, 1],
        [0, 0],
      ]),
    ).to.equal(0);
    // Each instance's own variance is 0.5 of two repeats, the whole has 0.25.
    expect(
      spread([
        [1, 0],
        [0, 1],
      ]),
    ).to.equal(2);
    expect(
      spread([
        [1, 1],
        [0, 1],
      ]),
    ).to.be.closeTo(0.25 / 0.1875, 1e-12);
    expect(spread([[1], [0]])).to.equal(null);
    expect(
      spread([
        [1, 1],
        [1, 1],
      ]),
    ).to.equal(null);
  });

  it('pairs one baseline run with every training, and leaves unmatched episodes out', () => {
    const second = rows('best-of-q', [1, 0, 0, 0, 1], { training: 'm1' });
    const pairs = pairedDifferences([...best, ...second], prompting);
    expect(pairs).to.have.length(8);
    expect(pairs.filter((pair) => pair.training === 'm1').map((pair) => pair.value)).to.deep.equal([
      0, 0, 0, 0,
    ]);
  });

  it('refuses an episode counted twice', () => {
    expect(() => summarizeSelectors([...prompting, ...best, ...best], { estimand: 'unseen-seeds' })).to.throw(
      Error,
      /"best-of-q" has task-0 seed 0 repeat 0 twice/,
    );
    try {
      pairedDifferences(best, [...prompting, ...prompting]);
      expect.fail('a doubled baseline was accepted');
    } catch (error) {
      expect(isBoqError(error, 'BOQ_DATA_INVALID')).to.equal(true);
    }
  });
});
