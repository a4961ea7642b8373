import { expect } from 'chai';
import {
  createMethod,
  methodWithMargin,
  parseMethodSpec,
  ruleNames,
} from '../../ts/agent/methods/registry.js';
import { replayThen, stateSignature } from '../../ts/agent/methods/replay.js';
import { createSelector } from '../../ts/agent/selectors/registry.js';
import type { ProposalEvent, Proposer } from '../../ts/agent/types.js';
import { isBoqError } from '../../ts/core/errors.js';
import { randomSource } from '../../ts/core/random.js';
import type { Usage } from '../../ts/store/types.js';
import { candidate, observation, scriptedProposer } from './support/fake-agent.js';
import { PathCritic, playMethod } from './support/maze.js';

const waiting = { action: { type: 'wait' }, thought: '', note: '' };
const refreshing = { action: { type: 'refresh' }, thought: '', note: '' };

/** Draws each candidate from the names. */
function drawing(names: readonly string[]): Proposer {
  return scriptedProposer((_, { random, n }) =>
    Array.from({ length: n }, () => candidate(names[random.below(names.length)]!)),
  );
}

describe('methods', () => {
  it('are named by selector and rules, with settings that change behaviour', () => {
    expect(createMethod('best-of-q').name).to.equal('best-of-q');
    expect(createMethod('best-of-q@margin=0.10 + union').name).to.equal('best-of-q@margin=0.1+union@calls=2');
    expect(createMethod('prompting').needsScores).to.equal(false);
    expect(createMethod('prompting+ask-again').needsScores).to.equal(true);
    expect(createMethod('best-of-q+calibrated').isStepwise).to.equal(true);
    expect(createMethod('best-of-q+trajectories').isStepwise).to.equal(false);
    const open = parseMethodSpec('lower-bound@k=2&margin=auto+calibrated');
    expect(methodWithMargin(open, 0.3).name).to.equal('lower-bound@k=2&margin=0.3+calibrated');
  });

  it('refuse what they do not know', () => {
    for (const [spec, word] of [
      ['best-of-q+unoin', 'union'],
      ['best-of-q+union@calls=1', '2'],
      ['best-of-q+union@calls=2.5', 'whole'],
      ['best-of-q+union+union', 'twice'],
      ['best-of-q+', 'Unknown rule'],
    ] as const) {
      try {
        createMethod(spec);
        expect.fail(spec);
      } catch (error) {
        expect(isBoqError(error, 'BOQ_USAGE') ? error.message : String(error), spec).to.include(word);
      }
    }
  });

  it('play a plain selector as the loop alone does, at its cost', async () => {
    const { taken, costs } = await playMethod('best-of-q', {
      critic: new PathCritic({ b: 0.9, 'b/a': 0.8 }),
    });
    expect(taken).to.deep.equal(['b', 'a']);
    // One task, two states, and the two candidates, which are the same in both.
    expect(costs).to.deep.equal({ proposals: 4, steps: 2, embeddings: 5, starts: 1 });
  });

  it('know every rule by a name that can be written', () => {
    for (const name of ruleNames) expect(createMethod(`best-of-q+${name}`).name).to.include(name);
  });
});

describe('lower-bound', () => {
  const scores = { q: [0.5, 0.8, 0.6], spread: [0.05, 0.4, 0.1], v: 0.5 };
  const choose = async (spec: string): Promise<number> => {
    const request = {
      instruction: '',
      candidates: ['a', 'b', 'c'].map((name) => candidate(name)),
      scores,
      random: randomSource([0]),
      history: [],
      screenshot: observation(0).screenshot,
    };
    return (await createSelector(spec).select(request)).index;
  };

  it('takes the highest mean minus k spreads, and leaves the first only above the margin', async () => {
    expect(await choose('lower-bound@k=0')).to.equal(1);
    expect(await choose('lower-bound@k=1')).to.equal(2);
    expect(await choose('lower-bound@k=10')).to.equal(0);
    expect(await choose('lower-bound@k=1&margin=0.04')).to.equal(2);
    expect(await choose('lower-bound@k=1&margin=0.06')).to.equal(0);
  });
});

describe('rules of proposal', () => {
  it('no-placeholders leaves out what passes the time, unless there is nothing else', async () => {
    const proposer = scriptedProposer(() => [
      waiting,
      candidate('a'),
      refreshing,
      candidate('b'),
      candidate('c'),
    ]);
    const { offered } = await playMethod('first+no-placeholders', { proposer, n: 2, maxSteps: 1 });
    expect(offered[0]).to.deep.equal(['a', 'b']);
    const idle = scriptedProposer(() => [waiting, refreshing]);
    const other = await playMethod('first+no-placeholders', { proposer: idle, n: 1, maxSteps: 1 });
    expect(other.offered[0]).to.deep.equal(['wait']);
  });

  it('union joins calls with draws of their own, each action once, the first call unchanged', async () => {
    const proposer = drawing(['a', 'b', 'c', 'd', 'e', 'f']);
    const plain = await playMethod('first', { proposer, n: 3, maxSteps: 1 });
    const joined = await playMethod('first+union@calls=3', { proposer, n: 3, maxSteps: 1 });
    const names = joined.offered[0]!;
    expect(new Set(names).size).to.equal(names.length);
    expect(names.length).to.be.greaterThan(new Set(plain.offered[0]).size);
    expect(names.slice(0, 1)).to.deep.equal(plain.offered[0]!.slice(0, 1));
    expect(joined.costs.proposals).to.equal(9);
  });

  it('samples keep what is said more than once, and the majority takes it', async () => {
    const proposer = drawing(['a', 'b', 'b', 'b']);
    const { offered, taken } = await playMethod('majority+samples@k=9', { proposer, n: 1, maxSteps: 1 });
    expect(offered[0]).to.have.length(9);
    const votes = (name: string): number => offered[0]!.filter((one) => one === name).length;
    expect(votes('b')).to.be.greaterThan(votes('a'));
    expect(taken).to.deep.equal(['b']);
  });

  it('majority takes the earlier of equals', async () => {
    const { taken } = await playMethod('majority', { n: 3, maxSteps: 1 });
    expect(taken).to.deep.equal(['a']);
  });

  it('page-derived adds what the page offers and the policy did not, in the order of its facts', async () => {
    const { offered } = await playMethod('first+page-derived@k=2', { n: 1, maxSteps: 1 });
    expect(offered[0]![0]).to.equal('a');
    expect(offered[0]).to.have.length(3);
    const again = await playMethod('first+page-derived@k=2', { n: 1, maxSteps: 1 });
    expect(again.offered).to.deep.equal(offered);
  });

  it('ask-again wants others where nothing offered is worth what the state promises', async () => {
    const low = new PathCritic({ '': 0.9, a: 0.2, b: 0.3, c: 0.8 });
    const { offered, taken } = await playMethod('best-of-q+ask-again@drop=0.1&more=1', {
      critic: low,
      maxSteps: 1,
    });
    expect(offered[0]).to.deep.equal(['a', 'b', 'c']);
    expect(taken).to.deep.equal(['c']);
    const fine = new PathCritic({ '': 0.9, a: 0.2, b: 0.85 });
    const content = await playMethod('best-of-q+ask-again@drop=0.1&more=1', { critic: fine, maxSteps: 1 });
    expect(content.offered[0]).to.deep.equal(['a', 'b']);
  });

  it('backtrack offers the way back once V has fallen, and Q decides', async () => {
    const critic = new PathCritic({ '': 0.8, a: 0.3, 'a/restart': 0.9 });
    const { offered, taken } = await playMethod('best-of-q+backtrack@drop=0.2', {
      critic,
      n: 1,
      maxSteps: 2,
    });
    expect(offered[0]).to.deep.equal(['a']);
    expect(offered[1]).to.deep.equal(['a', 'go_back', 'restart']);
    expect(taken).to.deep.equal(['a', 'restart']);
    const slight = new PathCritic({ '': 0.8, a: 0.7 });
    const stays = await playMethod('best-of-q+backtrack@drop=0.2', { critic: slight, n: 1, maxSteps: 2 });
    expect(stays.offered[1]).to.deep.equal(['a']);
  });
});

describe('calibrated', () => {
  it('compares chances instead of values', async () => {
    const critic = new PathCritic({ a: 0.5, b: 0.6 });
    const steep = Object.assign(critic, { chance: (q: number) => (q > 0.55 ? 1 : 0.1) });
    const { taken, records } = await playMethod('best-of-q@margin=0.5+calibrated', {
      critic: steep,
      maxSteps: 1,
    });
    expect(taken).to.deep.equal(['b']);
    expect(records[0]!.scores!.q).to.deep.equal([0.1, 1]);
    const plain = await playMethod('best-of-q@margin=0.5', { critic: steep, maxSteps: 1 });
    expect(plain.taken).to.deep.equal(['a']);
  });

  it('says what is missing where a model has no calibration', async () => {
    const fault = await playMethod('best-of-q+calibrated').catch((error) => error);
    expect(isBoqError(fault, 'BOQ_USAGE')).to.equal(true);
  });
});

describe('rules of whole episodes', () => {
  const usage: Usage = { purpose: 'policy', model: 'm', inputTokens: 1, outputTokens: 1 };

  it('trajectories counts the one whose last action has the highest Q, and never looks at the reward', async () => {
    const ends = { a: true, b: false, c: false };
    const critic = new PathCritic({ a: 0.1, b: 0.2, c: 0.9 });
    const names = ['a', 'b', 'c'];
    let start = 0;
    const proposer: Proposer = {
      name: 'turns',
      async *propose(): AsyncGenerator<ProposalEvent> {
        yield { type: 'usage', usage };
        yield { type: 'candidate', candidate: candidate(names[start++]!) };
      },
    };
    const played = await playMethod('prompting+trajectories@k=3', { ends, critic, proposer, maxSteps: 1 });
    expect(played.taken).to.deep.equal(['c']);
    expect(played.result.outcome).to.equal('failure');
    expect(played.costs).to.include({ starts: 3, steps: 3, proposals: 3 });
    expect(played.records[0]!.usage).to.have.length(3);
    expect(played.shots).to.deep.equal(['000']);
  });

  it('retry begins again while the end is not believed, without what it ended with', async () => {
    const ends = { a: false, b: true, c: false };
    const critic = new PathCritic({ a: 0.1, b: 0.8 });
    const heard: string[][] = [];
    const proposer = scriptedProposer((_, { observation: { events } }) => {
      heard.push(events);
      return ['a', 'b', 'c'].map((name) => candidate(name));
    });
    const played = await playMethod('prompting+retry@times=2&below=0.3', { ends, critic, proposer });
    expect(played.taken).to.deep.equal(['b']);
    expect(played.costs.starts).to.equal(2);
    expect(heard[0]).to.deep.equal([]);
    expect(heard[1]![0]).to.include('seems to have failed').and.include('click element: a');
    const believed = await playMethod('prompting+retry@times=2&below=0.05', { ends, critic, proposer });
    expect(believed.costs.starts).to.equal(1);
  });

  it('search looks ahead by reset and replay, and takes the path of highest value', async () => {
    const ends = { 'a/a': false, 'b/a': true };
    // Only two actions ahead shows that b is the way.
    const critic = new PathCritic({ a: 0.6, b: 0.55, 'a/a': 0.2, 'a/b': 0.1, 'b/a': 0.95, 'b/b': 0.1 });
    const options = { ends, critic, n: 2, maxSteps: 3 };
    const found = await playMethod('best-of-q+search@depth=2&width=2&budget=6', options);
    expect(found.taken).to.deep.equal(['b', 'a']);
    expect(found.result.outcome).to.equal('success');
    expect(found.costs.starts).to.be.greaterThan(3);
    expect(found.costs.steps).to.be.greaterThan(6);
    const greedy = await playMethod('best-of-q', options);
    expect(greedy.taken[0]).to.equal('a');
  });

  it('search of depth 1 judges candidates by V of where they lead', async () => {
    const critic = new PathCritic({ a: 0.2, b: 0.7 });
    const { taken } = await playMethod('first+search@depth=1&width=2&budget=2', { critic, maxSteps: 1 });
    expect(taken).to.deep.equal(['b']);
  });

  it('search gives up where replay does not reproduce, and the policy goes on', async () => {
    const critic = new PathCritic({ a: 0.6, b: 0.7 });
    const mark = (start: number): string => `?visit=v${start}`;
    const { taken, result } = await playMethod('first+search@depth=2&width=2&budget=4', {
      ...{ critic, mark },
      maxSteps: 2,
    });
    expect(taken).to.have.length(2);
    expect(result.outcome).to.equal('step-limit');
    expect(taken[0]).to.equal('a');
  });
});

describe('replay', () => {
  it('tells states apart by what the agent could act on, not by pictures or time stamps', () => {
    const base = { ...observation(1), url: 'http://x.test/p?q=tea&t=1700000000123' };
    const same = { ...base, url: 'http://x.test/p?q=tea&t=1800000000456' };
    same.screenshot = { ...same.screenshot, bytes: new Uint8Array([9]) };
    expect(stateSignature(same)).to.equal(stateSignature(base));
    expect(stateSignature({ ...base, url: 'http://x.test/p?q=milk' })).to.not.equal(stateSignature(base));
    expect(stateSignature({ ...base, scroll: { ...base.scroll, y: 40 } })).to.not.equal(stateSignature(base));
  });

  it('follows its script, then the policy; and the policy from the first state that differs', async () => {
    const proposer = scriptedProposer(() => [candidate('a'), candidate('b')]);
    const script = ['x', 'y'].map((name, step) => ({
      candidates: [candidate('a'), candidate(name)],
      index: 1,
      signature: stateSignature(observation(step)),
    }));
    const walk = async (states: readonly number[]) => {
      const replay = replayThen(script, proposer, createSelector('first'));
      const taken: string[] = [];
      for (const [step, state] of states.entries()) {
        const history = Array.from({ length: step }, () => ({
          ...candidate('h'),
          result: { ok: true, message: '' },
        }));
        const request = {
          instruction: '',
          history,
          observation: observation(state),
          n: 2,
          random: randomSource([0]),
        };
        const candidates = [];
        for await (const event of replay.proposer.propose(request)) {
          if (event.type === 'candidate') candidates.push(event.candidate);
        }
        const { screenshot } = request.observation;
        const decision = await replay.selector.select({ ...request, candidates, scores: null, screenshot });
        taken.push(String(candidates[decision.index]!.action['element']));
      }
      return { taken, lostAt: replay.lostAt };
    };
    expect(await walk([0, 1, 2])).to.deep.equal({ taken: ['x', 'y', 'a'], lostAt: null });
    expect(await walk([0, 7, 1])).to.deep.equal({ taken: ['x', 'a', 'a'], lostAt: 1 });
  });
});
