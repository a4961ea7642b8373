/** Going round in circles, budgets, last answers, hooks and the picker. */
import { expect } from 'chai';
import { Budget, priceOf } from '../../ts/agent/budget.js';
import type { RunEpisodeOptions } from '../../ts/agent/episode.js';
import { runEpisode } from '../../ts/agent/loop.js';
import { LoopGuard } from '../../ts/agent/loop-guard.js';
import { pickerSelector, wordPicker } from '../../ts/agent/selectors/picker.js';
import { createSelector } from '../../ts/agent/selectors/registry.js';
import type { ProposeRequest } from '../../ts/agent/types.js';
import { BoqError, isBoqError } from '../../ts/core/errors.js';
import { randomSource } from '../../ts/core/random.js';
import type { Usage } from '../../ts/store/types.js';
import {
  anyPlace,
  ClickWorld,
  candidate,
  clickEpisode,
  MemoryRecorder,
  observation,
  scriptedProposer,
} from './support/fake-agent.js';

/** A page that looks the same whatever is done to it. */
class StillWorld extends ClickWorld {
  override async observe() {
    return observation(0);
  }
}

function play(changes: Partial<RunEpisodeOptions> = {}) {
  const recorder = new MemoryRecorder();
  const result = runEpisode({
    episode: clickEpisode(),
    proposer: scriptedProposer(() => [candidate('elsewhere')]),
    selector: createSelector('first'),
    localizer: anyPlace,
    critic: null,
    n: 2,
    limits: { maxSteps: 6, maxMs: 60_000 },
    random: (step, purpose) => randomSource([step, purpose]),
    recorder,
    ...changes,
  });
  return { result, recorder };
}

const usage = (model: string, inputTokens = 100, outputTokens = 10): Usage => ({
  purpose: 'policy',
  model,
  inputTokens,
  outputTokens,
});
const answer = (text: string) => ({ action: { type: 'answer', text }, thought: '', note: '' });

describe('LoopGuard', () => {
  it('tells the policy of what it repeats in vain, and ends what does not stop', async () => {
    const heard: string[][] = [];
    const proposer = scriptedProposer((_, request) => {
      heard.push([...request.observation.events]);
      return [candidate('elsewhere')];
    });
    const guard = new LoopGuard({ stopAfter: 3 });
    const { result, recorder } = play({ episode: clickEpisode(new StillWorld()), proposer, guard });
    expect(await result).to.include({ outcome: 'stuck', steps: 3, reward: 0 });
    expect(heard.slice(0, 2)).to.deep.equal([[], []]);
    expect(heard[2]).to.have.length(1);
    expect(heard[2]![0]).to.include('2 times in this state');
    expect(recorder.records[2]!.observation.events).to.deep.equal(heard[2]);
  });

  it('leaves an agent alone that changes the page or tries other things', async () => {
    const moving = play({ guard: new LoopGuard({ stopAfter: 2 }) });
    expect(await moving.result).to.include({ outcome: 'step-limit', steps: 6 });
    const proposer = scriptedProposer((step) => [candidate(`place ${step}`)]);
    const trying = play({
      episode: clickEpisode(new StillWorld()),
      proposer,
      guard: new LoopGuard({ stopAfter: 2 }),
    });
    expect(await trying.result).to.include({ outcome: 'step-limit', steps: 6 });
  });

  it('sees circles of several actions', async () => {
    const guard = new LoopGuard({ stopAfter: 2 });
    const proposer = scriptedProposer((step) => [candidate(step % 2 ? 'left' : 'right')]);
    const { result } = play({ episode: clickEpisode(new StillWorld()), proposer, guard });
    expect(await result).to.include({ outcome: 'stuck', steps: 3 });
  });
});

describe('Budget', () => {
  it('ends the episode when it is spent, over all calls of the policy', async () => {
    const proposer = scriptedProposer(() => [
      { type: 'usage', usage: usage('gpt-4.1-mini') },
      candidate('x'),
    ]);
    const budget = new Budget({ maxCalls: 3 });
    expect(await play({ proposer, budget }).result).to.include({ outcome: 'budget', steps: 3 });
    expect(budget.spent).to.include({ calls: 3, tokens: 330 });
    expect(await play({ proposer, budget }).result).to.include({ outcome: 'budget', steps: 0 });
    expect(await play({ proposer, budget: new Budget({ maxTokens: 200 }) }).result).to.include({ steps: 2 });
  });

  it('does not charge for the embedder, which runs here', () => {
    const budget = new Budget({ maxUsd: 1, maxCalls: 1 });
    budget.add({ purpose: 'embedder', model: 'tiny', inputTokens: 5000, outputTokens: 0 });
    expect(budget.spent).to.deep.equal({ tokens: 0, calls: 0, usd: 0 });
    expect(budget.exhausted()).to.equal(null);
  });

  it('counts dollars by the price of the model', () => {
    const budget = new Budget({ maxUsd: 10 });
    budget.add(usage('Qwen/Qwen2.5-VL-72B-Instruct', 1_000_000, 500_000));
    expect(budget.spent.usd).to.be.closeTo(3, 1e-9);
    expect(budget.exhausted()).to.equal(null);
    budget.add(usage('gpt-4.1', 0, 1_000_000));
    expect(budget.exhausted()).to.include('of 10 dollars');
    expect(priceOf('llama')).to.equal(null);
    expect(() => budget.add(usage('llama')))
      .to.throw('llama')
      .and.satisfy((e: unknown) => isBoqError(e, 'BOQ_USAGE'));
    new Budget({ maxCalls: 5 }).add(usage('llama'));
  });
});

describe('Budget of failed calls', () => {
  it('is charged with what a localizer or a picker cost before it failed', async () => {
    const refuse = async (): Promise<never> => {
      throw new BoqError('BOQ_VLM_BUSY', 'overloaded', { details: { usage: [usage('m'), usage('m')] } });
    };
    const budget = new Budget({});
    const failing = { localizer: { name: 'lost', locate: refuse }, budget };
    const error = await play(failing).result.catch((reason: unknown) => reason);
    expect(error).to.satisfy((e: unknown) => isBoqError(e, 'BOQ_VLM_BUSY'));
    expect(budget.spent).to.include({ calls: 2, tokens: 220 });
    const selector = pickerSelector({ name: 'lost', pick: refuse });
    const proposer = scriptedProposer(() => [candidate('a'), candidate('b')]);
    await play({ selector, proposer, budget }).result.catch(() => undefined);
    expect(budget.spent).to.include({ calls: 4, tokens: 440 });
  });
});

describe('Budget in minutes', () => {
  it('is spent when they have passed', () => {
    let now = 0;
    const budget = new Budget({ maxMinutes: 2 }, () => now);
    expect(budget.exhausted()).to.equal(null);
    now = 119_999;
    expect(budget.exhausted()).to.equal(null);
    now = 120_000;
    expect(budget.exhausted()).to.equal('2 minutes have passed');
  });
});

describe('onLimit', () => {
  it('asks for one last answer and takes nothing else', async () => {
    const asked: (boolean | undefined)[] = [];
    const proposer = scriptedProposer((_, request: ProposeRequest) => {
      asked.push(request.mustAnswer);
      return request.mustAnswer ? [candidate('x'), answer('as far as I came')] : [candidate('x')];
    });
    const limits = { maxSteps: 2, maxMs: 60_000 };
    const { result, recorder } = play({ proposer, limits, onLimit: 'answer' });
    expect(await result).to.include({ outcome: 'answered', answer: 'as far as I came', steps: 3 });
    expect(asked).to.deep.equal([undefined, undefined, true]);
    expect(recorder.records[2]!.candidates).to.deep.equal([answer('as far as I came')]);
  });

  it('fails where the policy has no answer', async () => {
    const { result, recorder } = play({ onLimit: 'answer', limits: { maxSteps: 2, maxMs: 60_000 } });
    expect(await result).to.include({ outcome: 'step-limit', steps: 2 });
    expect(recorder.records).to.have.length(2);
  });
});

describe('hooks', () => {
  it('are waited for, in order', async () => {
    const order: string[] = [];
    const slowly = async (name: string) => {
      await new Promise((done) => setImmediate(done));
      order.push(name);
    };
    const proposer = scriptedProposer(() => {
      order.push('propose');
      return [candidate('goal')];
    });
    const world = new ClickWorld();
    world.beforeAct = async () => void order.push('act');
    await play({
      episode: clickEpisode(world),
      proposer,
      beforeStep: (_, step) => slowly(`before step ${step}`),
      beforeAction: async ({ action }) => {
        await slowly(`before ${action['element']}`);
        return true;
      },
      afterStep: ({ index }) => slowly(`after step ${index}`),
    }).result;
    expect(order).to.deep.equal(['before step 0', 'propose', 'before goal', 'act', 'after step 0']);
  });

  it('that fail end the episode with their error', async () => {
    const afterStep = async () => {
      throw new Error('no disk for my notes');
    };
    const error = await play({ afterStep }).result.catch((reason: unknown) => reason);
    expect(error).to.be.instanceOf(Error).with.property('message', 'no disk for my notes');
  });
});

describe('picker', () => {
  const three = [candidate('red door'), candidate('goal'), candidate('goal')];

  it('decides, gives its reason, and its cost counts', async () => {
    const budget = new Budget({ maxCalls: 100 });
    const seen: string[] = [];
    const selector = pickerSelector({
      name: 'judge',
      pick: async ({ instruction, candidates, screenshot }) => {
        seen.push(instruction, String(candidates.length), screenshot.format);
        return { index: 1, reason: 'it is the goal', usage: [{ ...usage('judge'), purpose: 'picker' }] };
      },
    });
    const { result, recorder } = play({ proposer: scriptedProposer(() => three), selector, budget, n: 3 });
    expect(await result).to.include({ outcome: 'success' });
    expect(seen).to.deep.equal(['click the goal', '3', 'webp']);
    const [record] = recorder.records;
    expect(record!.selection).to.deep.equal({
      selector: 'picker@by=judge',
      index: 1,
      reason: 'it is the goal',
    });
    expect(record!.usage.map(({ purpose }) => purpose)).to.deep.equal(['picker']);
    expect(budget.spent.calls).to.equal(1);
  });

  it('must name a candidate', async () => {
    const selector = pickerSelector({ name: 'lost', pick: async () => ({ index: 7, reason: '' }) });
    const error = await play({ proposer: scriptedProposer(() => three), selector }).result.catch(
      (e: unknown) => e,
    );
    expect(isBoqError(error, 'BOQ_PROPOSER')).to.equal(true);
  });

  it('is not asked about a single candidate', async () => {
    const selector = pickerSelector({
      name: 'unasked',
      pick: async () => {
        throw new Error('was asked');
      },
    });
    await play({ proposer: scriptedProposer(() => [candidate('goal')]), selector }).result;
  });

  it('works by words without a model: what the task names, and what was not done yet', async () => {
    const request = {
      instruction: 'Click the green door, then the red door',
      scores: null,
      random: randomSource([0]),
      screenshot: observation(0).screenshot,
    };
    const candidates = [candidate('blue window'), candidate('red door'), candidate('green door')];
    expect(await wordPicker.pick({ ...request, candidates, history: [] })).to.include({ index: 1 });
    const history = [{ ...candidate('red door'), result: { ok: true, message: '' } }];
    expect(await wordPicker.pick({ ...request, candidates, history })).to.include({ index: 2 });
    expect(createSelector('picker').name).to.equal('picker@by=words');
  });
});
