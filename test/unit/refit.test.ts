import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { createPolicy } from '../../ts/agent/policy/registry.js';
import { factsOf, reweigh } from '../../ts/agent/policy/weights.js';
import { fitWeights, refitPolicy, refitSteps } from '../../ts/evaluation/refit.js';
import { openRun } from '../../ts/store/run.js';
import { writeRun } from '../support/run-folders.js';

describe('refitting the page policy', () => {
  it('finds the weights under which what was taken is most likely', () => {
    // "good" is taken three times of four where it stands against "plain".
    const pair = { candidates: [['good'], ['plain']], weight: 1 };
    const steps = [0, 0, 0, 1].map((chosen) => ({ ...pair, chosen }));
    const { good, plain } = fitWeights(steps, { decay: 0, iterations: 3000 });
    expect(good! - plain!).to.be.closeTo(Math.log(3), 1e-3);
  });

  it('counts steps by their weight', () => {
    const pair = { candidates: [['good'], ['plain']] };
    const steps = [
      { ...pair, chosen: 0, weight: 1 },
      { ...pair, chosen: 1, weight: 5 },
    ];
    const { good, plain } = fitWeights(steps);
    expect(plain!).to.be.greaterThan(good!);
  });

  it('ranks by other weights, and keeps its own for facts that it was not fitted to', () => {
    const option = (name: string, phrases: [string, number][]) => ({
      action: { type: 'click', element: name },
      facts: phrases.map(([phrase, weight]) => ({ phrase, weight })),
      score: phrases.reduce((sum, [, weight]) => sum + weight, 0),
    });
    const options = [
      option('a', [['seen', 5]]),
      option('b', [['new', 2]]),
      option('c', [['one and two', 1]]),
    ];
    const order = reweigh(options, { name: 'x', weights: { seen: -1, one: 4, two: 5 } });
    expect(order.map(({ action }) => action.element)).to.deep.equal(['c', 'b', 'a']);
    expect(order[0]!.score).to.equal(9);
    expect(factsOf('')).to.deep.equal([]);
  });

  it('reads steps from a run: clones successes, or weighs all by advantage; page itself stays', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'boq-refit-'));
    try {
      await writeRun(join(folder, 'run'), 'collect', [
        { task: 'alpha', seed: 0, selector: 'epsilon-greedy', success: true, chosen: 1 },
        { task: 'alpha', seed: 1, selector: 'epsilon-greedy', success: false, chosen: 0 },
      ]);
      const run = await openRun(join(folder, 'run'));
      const filtered = await refitSteps([run], 'filtered');
      expect(filtered.map(({ weight }) => weight).sort()).to.deep.equal([0, 1]);
      const weighed = await refitSteps([run], 'advantage');
      const [low, high] = weighed.map(({ weight }) => weight).sort((a, b) => a - b);
      expect(low).to.be.closeTo(Math.exp(-2.5), 1e-9);
      expect(high).to.be.closeTo(Math.exp(2.5), 1e-9);
      const policy = await refitPolicy([run], 'filtered');
      expect(policy.name).to.equal('page-refit-filtered');
      expect(createPolicy('page').name).to.equal('page');
    } finally {
      await rm(folder, { recursive: true });
    }
  });
});
