import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { createSelector } from '../../ts/agent/selectors/registry.js';
import { randomSource } from '../../ts/core/random.js';
import {
  chooseMargin,
  keptMargin,
  type MarginConditions,
  type MarginOutcome,
  type MarginPoint,
  marginRule,
  readMargin,
  sweepMargins,
  writeMargin,
} from '../../ts/evaluation/margin.js';

const seen = {
  instruction: 'click the goal',
  screenshot: { bytes: new Uint8Array(), format: 'webp', width: 1, height: 1 },
} as const;

/** An episode whose later steps depend on every earlier decision: a chain of steps with Q drawn from the path. */
function playChain(margin: number, episode: number, rescue = 0): MarginOutcome {
  const selector = createSelector(`best-of-q@margin=${margin}&rescue=${rescue}`);
  const gains: number[] = [];
  let path = String(episode);
  for (let step = 0; step < 4; step++) {
    const random = randomSource([path]);
    const q = [random.next(), random.next(), random.next()];
    const candidates = q.map(() => ({ action: { type: 'wait' }, thought: '', note: '' }));
    const scores = { q, spread: [0, 0, 0], v: 0 };
    const selection = selector.select({ candidates, scores, random, history: [], ...seen });
    if (selection instanceof Promise) throw new Error('expected a selection at once');
    if (selection.index !== 0 && !selection.evidence?.['rescued']) gains.push(q[selection.index]! - q[0]!);
    path += `/${selection.index}`;
  }
  return { success: randomSource([path, 'end']).next() < 0.5, gains };
}

function point(margin: number, successes: string): MarginPoint {
  const outcomes = [...successes].map((mark) => ({ success: mark === '+', gains: [] }));
  return { margin, outcomes, played: outcomes.length };
}

describe('sweepMargins', () => {
  it('gives what playing every episode under every margin would give, and plays far fewer', async () => {
    const grid = [0.5, 0, 0.05, 0.2, 0.1, 0.3, 0.9];
    let played = 0;
    const points = await sweepMargins(60, grid, async (margin, episodes) => {
      played += episodes.length;
      return episodes.map((episode) => playChain(margin, episode));
    });
    expect(points.map(({ margin }) => margin)).to.deep.equal([0, 0.05, 0.1, 0.2, 0.3, 0.5, 0.9]);
    for (const { margin, outcomes } of points) {
      const full = Array.from({ length: 60 }, (_, episode) => playChain(margin, episode));
      expect(outcomes, `margin ${margin}`).to.deep.equal(full);
    }
    expect(played).to.be.lessThan(60 * grid.length * 0.8);
    expect(points.reduce((sum, one) => sum + one.played, 0)).to.equal(played);
  });

  it('is as exact for a rule that rescues whatever the margin', async () => {
    const points = await sweepMargins(60, [0, 0.1, 0.3, 0.9], async (margin, episodes) =>
      episodes.map((episode) => playChain(margin, episode, 0.4)),
    );
    for (const { margin, outcomes } of points) {
      const full = Array.from({ length: 60 }, (_, episode) => playChain(margin, episode, 0.4).success);
      expect(outcomes.map(({ success }) => success)).to.deep.equal(full);
    }
  });
});

describe('chooseMargin', () => {
  it('takes the most successful margin where the others are clearly worse', () => {
    const points = [point(0, '++------------'), point(0.1, '++++++++++----'), point(0.5, '++++----------')];
    expect(chooseMargin(points).margin).to.equal(0.1);
  });

  it('goes on to a larger margin within the noise, and on ties', () => {
    const one = [
      point(0, '+++++-----'),
      point(0.1, '++++++----'),
      point(0.2, '++++++----'),
      point(0.3, '+++++-----'),
    ];
    expect(chooseMargin(one).margin).to.equal(0.3);
    expect(chooseMargin([point(0, '+-'), point(0.2, '+-'), point(1, '+-')]).margin).to.equal(1);
  });

  it('takes the largest where no margin helps', () => {
    const points = [point(0, '----------'), point(0.1, '+++-------'), point(1, '++++------')];
    expect(chooseMargin(points).margin).to.equal(1);
  });

  it('shows what it went by', () => {
    const { rows } = chooseMargin([point(0, '++--'), point(0.1, '+++-')]);
    expect(rows[0]).to.include({ margin: 0, successRate: 0.5, loss: 0.25, played: 4 });
    expect(rows[0]!.lossError).to.be.closeTo(0.25, 1e-9);
    expect(rows[1]).to.include({ loss: 0, lossError: 0 });
  });
});

describe('margin.json', () => {
  const conditions: MarginConditions = {
    model: 'm',
    benchmark: 'miniwob',
    tasks: ['a'],
    seeds: { from: 10_000, to: 10_001 },
    repeats: 1,
    policy: 'page',
    n: 3,
    maxSteps: 10,
    seed: 0,
    grid: [0, 0.1],
    method: 'best-of-q',
  };

  it('holds for the conditions it was chosen under, and no others', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'boq-margin-'));
    try {
      expect(await readMargin(folder, conditions)).to.equal(null);
      await writeMargin(folder, { version: 1, margin: 0.1, rule: marginRule, conditions, rows: [] });
      expect((await readMargin(folder, { ...conditions }))?.margin).to.equal(0.1);
      expect(await readMargin(folder, { ...conditions, n: 5 })).to.equal(null);
      expect(await readMargin(folder, { ...conditions, model: 'other' })).to.equal(null);
      expect(await keptMargin(folder)).to.equal(0.1);
      await writeFile(join(folder, 'margin.json'), '{"version": 1, "mar');
      expect(await keptMargin(folder)).to.equal(null);
      expect(await readMargin(folder, conditions)).to.equal(null);
    } finally {
      await rm(folder, { recursive: true });
    }
  });
});
