import { expect } from 'chai';
import { runEpisode } from '../../ts/agent/loop.js';
import { replayThen } from '../../ts/agent/methods/replay.js';
import { createSelector } from '../../ts/agent/selectors/registry.js';
import { randomSource } from '../../ts/core/random.js';
import {
  looksFinal,
  nextBranch,
  type Rollout,
  reproduced,
  type TreeShape,
} from '../../ts/evaluation/tree/branches.js';
import { defaultShape } from '../../ts/evaluation/tree/explore.js';
import { type LabelStep, labelActions } from '../../ts/learning/backup.js';
import { anyPlace, candidate, MemoryRecorder, scriptedProposer } from './support/fake-agent.js';
import { Maze } from './support/maze.js';

const proposer = scriptedProposer(() => ['a', 'b', 'c'].map((name) => candidate(name)));

/** Grows a tree in the maze; `lie`: at these roll-outs the address differs, as on a page that does not reproduce. */
async function grow(shape: Partial<TreeShape>, ends: Record<string, boolean>, lie: readonly number[] = []) {
  const whole = { ...defaultShape, irreversible: true, ...shape };
  const rollouts: (Rollout & { taken: string })[] = [];
  for (;;) {
    const branch = nextBranch(rollouts, whole);
    if (branch === null) return { rollouts, taken: rollouts.map(({ taken }) => taken), shape: whole };
    const maze = new Maze(ends, lie.includes(rollouts.length) ? '#other' : '');
    const replay = replayThen(branch, proposer, createSelector('first'));
    const recorder = new MemoryRecorder();
    const { outcome } = await runEpisode({
      episode: { instruction: 'go', startUrl: 'http://maze.test/', environment: maze },
      proposer: replay.proposer,
      selector: replay.selector,
      localizer: anyPlace,
      critic: null,
      n: 3,
      limits: { maxSteps: 3, maxMs: Number.POSITIVE_INFINITY },
      random: (step) => randomSource([step]),
      recorder,
    });
    const steps = recorder.records;
    rollouts.push({
      steps,
      success: outcome === 'success',
      actions: steps.length,
      taken: maze.path.join('/'),
    });
  }
}

describe('a tree of roll-outs', () => {
  it('tries the other actions of each state, level by level, and goes on as the policy would', async () => {
    const { taken } = await grow({ width: 2, depth: 2, rollouts: 10 }, {});
    expect(taken).to.deep.equal(['a/a/a', 'b/a/a', 'a/b/a', 'b/b/a']);
  });

  it('keeps to its width, depth, roll-outs and actions', async () => {
    expect((await grow({ width: 3, depth: 1 }, {})).taken).to.deep.equal(['a/a/a', 'b/a/a', 'c/a/a']);
    expect((await grow({ width: 1, depth: 3 }, {})).taken).to.have.length(1);
    expect((await grow({ width: 3, depth: 3, rollouts: 5 }, {})).taken).to.have.length(5);
    expect((await grow({ width: 3, depth: 3, actions: 7 }, {})).taken).to.have.length(3);
  });

  it('prunes by outcome: branches are opened in the first roll-out and in those that ended so', async () => {
    const ends = { 'b/a': true, 'a/a': false };
    const success = await grow({ width: 2, depth: 2, expand: 'success' }, ends);
    expect(success.taken).to.deep.equal(['a/a', 'b/a', 'a/b/a', 'b/b/a']);
    const failure = await grow({ width: 2, depth: 2, expand: 'failure' }, ends);
    expect(failure.taken).to.deep.equal(['a/a', 'b/a', 'a/b/a']);
    const first = await grow({ width: 2, depth: 2, expand: 'first' }, {});
    expect(first.taken).to.deep.equal(['a/a/a', 'b/a/a', 'a/b/a']);
  });

  it('leaves out what looks as if it could not be undone', () => {
    expect(looksFinal({ type: 'click', element: 'button "Place order"' })).to.equal(true);
    expect(looksFinal({ type: 'write', element: 'textbox', text: 'x', submit: true })).to.equal(true);
    expect(looksFinal({ type: 'answer', text: 'x' })).to.equal(true);
    expect(looksFinal({ type: 'click', element: 'tab "Orders in detail"' })).to.equal(false);
    expect(looksFinal({ type: 'write', element: 'textbox', text: 'delete', submit: false })).to.equal(false);
    const step = {
      candidates: [candidate('tab "One"'), candidate('button "Delete"')],
      selection: { selector: 'first', index: 0, reason: '', evidence: { signature: 's' } },
    };
    const rollouts = [{ steps: [step as never], success: false, actions: 1 }];
    expect(nextBranch(rollouts, { ...defaultShape, irreversible: false })).to.equal(null);
    expect(nextBranch(rollouts, { ...defaultShape, irreversible: true })).to.have.length(1);
  });

  it('notices a replay that does not reproduce, and gives the state up after the second', async () => {
    const { rollouts, shape } = await grow({ width: 2, depth: 1 }, {}, [1, 2, 3, 4]);
    expect(rollouts).to.have.length(3);
    expect(reproduced(rollouts, shape)).to.deep.equal({ branches: 2, lost: 2 });
    const whole = await grow({ width: 2, depth: 2 }, {});
    expect(reproduced(whole.rollouts, whole.shape).lost).to.equal(0);
  });

  it('marks the steps that were done again', async () => {
    const { rollouts } = await grow({ width: 2, depth: 2 }, {});
    const replayed = rollouts[2]!.steps.map(({ selection }) => selection.evidence?.['replayed'] ?? null);
    expect(replayed).to.deep.equal([true, false, null]);
  });
});

describe('labels by backup', () => {
  /** Episodes as (state, action) pairs with the reward of the last. */
  const episode = (pairs: readonly (readonly [number, number])[], reward: number): LabelStep[] =>
    pairs.map(([state, action], index) => {
      const isLast = index === pairs.length - 1;
      return { state, action, task: 0, reward: isLast ? reward : 0, isLast };
    });
  const episodes = [
    episode([[0, 0], [1, 0]], 0), // biome-ignore format: a tree
    episode([[0, 0], [1, 1]], 1), // biome-ignore format: a tree
    episode([[0, 1]], 0),
  ];
  const labels = (backup: 'max' | 'mean' | 'padded', gamma: number) =>
    Object.fromEntries(
      labelActions(episodes, { backup, gamma, height: 3 }).map(({ state, action, label }) => [
        `${state}${action}`,
        label,
      ]),
    );

  it('max carries back the best that was reached, discounted', () => {
    expect(labels('max', 0.9)).to.deep.equal({ '10': 0, '00': 0.9, '11': 1, '01': 0 });
  });

  it('mean carries back the mean of all that was', () => {
    expect(labels('mean', 0.9)).to.deep.equal({ '10': 0, '00': 0.45, '11': 1, '01': 0 });
  });

  it('padded fills short ways up, and stays within one scale', () => {
    const padded = labels('padded', 0.9);
    expect(padded['00']).to.be.greaterThan(0).and.at.most(1);
    expect(padded['01']).to.equal(0);
    const short = labelActions([episode([[0, 0]], 1)], { backup: 'padded', gamma: 0.9, height: 3 });
    expect(short[0]!.label).to.equal(1);
  });

  it('counts visits, and takes chance at the same end as a mean', () => {
    const lucky = [episode([[0, 0]], 1), episode([[0, 0]], 0), episode([[0, 0]], 0)];
    const [one] = labelActions(lucky, { backup: 'max', gamma: 0.9 });
    expect(one).to.include({ visits: 3 });
    expect(one!.label).to.be.closeTo(1 / 3, 1e-12);
  });

  it('gets nothing out of a circle', () => {
    const circle = [episode([[0, 0], [1, 0], [0, 0], [1, 1]], 0)]; // biome-ignore format: a way
    for (const { label } of labelActions(circle, { backup: 'max', gamma: 0.99 })) expect(label).to.equal(0);
  });
});
