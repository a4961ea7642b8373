import { expect } from 'chai';
import type { EpisodeEvent, RunEpisodeOptions } from '../../ts/agent/episode.js';
import { runEpisode } from '../../ts/agent/loop.js';
import { createSelector } from '../../ts/agent/selectors/registry.js';
import { BoqError } from '../../ts/core/errors.js';
import { randomSource } from '../../ts/core/random.js';
import {
  anyPlace,
  ClickWorld,
  candidate,
  clickEpisode,
  MemoryRecorder,
  scriptedProposer,
  TableCritic,
} from './support/fake-agent.js';

type Changes = Partial<Omit<RunEpisodeOptions, 'selector' | 'recorder'>> & { selector?: string };

function play({ selector = 'first', ...changes }: Changes = {}) {
  const recorder = new MemoryRecorder();
  const done = runEpisode({
    episode: clickEpisode(),
    proposer: scriptedProposer(() => [candidate('goal')]),
    localizer: anyPlace,
    critic: null,
    n: 3,
    limits: { maxSteps: 4, maxMs: Number.POSITIVE_INFINITY },
    random: (step, purpose) => randomSource([step, purpose]),
    ...changes,
    selector: createSelector(selector),
    recorder,
  });
  return { done, recorder };
}

async function code(work: Promise<unknown>): Promise<string> {
  try {
    await work;
  } catch (error) {
    return error instanceof BoqError ? error.code : String(error);
  }
  return 'none';
}

describe('runEpisode', () => {
  it('records a step and ends with the verdict', async () => {
    const { done, recorder } = play();
    expect(await done).to.deep.equal({
      outcome: 'success',
      reward: 1,
      rawReward: 0.7,
      answer: null,
      steps: 1,
      finalObservation: null,
    });
    const [record] = recorder.records;
    expect(record).to.deep.include({
      index: 0,
      candidates: [candidate('goal')],
      selection: { selector: 'first', index: 0, reason: "the policy's first" },
      grounding: { localizer: 'any', point: { x: 1, y: 2 }, element: 'goal' },
      result: { ok: true, message: 'did click' },
    });
    expect(record!.observation.screenshot).to.equal('shots/000.webp');
  });

  it('ends at the step limit with the state after the last action', async () => {
    const { done, recorder } = play({ proposer: scriptedProposer(() => [candidate('elsewhere')]) });
    const result = await done;
    expect(result).to.include({ outcome: 'step-limit', reward: 0, steps: 4 });
    expect(result.finalObservation).to.include({ url: 'http://page.test/4', screenshot: 'shots/final.webp' });
    expect(recorder.shots).to.have.length(5);
  });

  it('ends at the time limit, and does not record the step that was cut off', async () => {
    const world = new ClickWorld();
    world.beforeAct = (signal) =>
      new Promise((_, reject) => signal?.addEventListener('abort', () => reject(new Error('cut off'))));
    const { done, recorder } = play({ episode: clickEpisode(world), limits: { maxSteps: 4, maxMs: 20 } });
    expect(await done).to.deep.include({ outcome: 'time-limit', steps: 0 });
    expect(recorder.records).to.deep.equal([]);
    expect(recorder.shots).to.deep.equal(['000', 'final']);
  });

  it('throws BOQ_ABORTED when its caller stops it', async () => {
    const stop = new AbortController();
    const world = new ClickWorld();
    world.beforeAct = (signal) =>
      new Promise((_, reject) => {
        signal?.addEventListener('abort', () => reject(new Error('cut off')));
        stop.abort();
      });
    const { done, recorder } = play({ episode: clickEpisode(world), signal: stop.signal });
    expect(await code(done)).to.equal('BOQ_ABORTED');
    expect(recorder.records).to.deep.equal([]);
    expect(await code(play({ signal: stop.signal }).done)).to.equal('BOQ_ABORTED');
  });

  it('passes faults on: they are no outcome', async () => {
    const world = new ClickWorld();
    world.beforeAct = async () => {
      throw new BoqError('BOQ_BROWSER', 'the page crashed');
    };
    expect(await code(play({ episode: clickEpisode(world) }).done)).to.equal('BOQ_BROWSER');
  });

  it('takes an answer as the end, with its text', async () => {
    const proposer = scriptedProposer(() => [
      { action: { type: 'answer', text: '42' }, thought: '', note: '' },
    ]);
    expect(await play({ proposer }).done).to.include({
      outcome: 'answered',
      answer: '42',
      reward: 0,
      steps: 1,
    });
  });

  it('tells the policy of an element that was not found, and does not act', async () => {
    const world = new ClickWorld();
    const heard: string[] = [];
    const proposer = scriptedProposer((step, { history }) => {
      heard.push(...history.slice(-1).map(({ result }) => result.message));
      return [candidate(step === 0 ? 'missing' : 'goal')];
    });
    const { done, recorder } = play({ episode: clickEpisode(world), proposer });
    expect(await done).to.include({ outcome: 'success', steps: 2 });
    expect(heard).to.deep.equal(['no element matches missing']);
    expect(world.acts).to.have.length(1);
    expect(recorder.records[0]).to.deep.include({
      grounding: null,
      result: { ok: false, message: 'no element matches missing' },
    });
  });

  it('waits where no candidate is valid, records the errors, and gives up after three such steps', async () => {
    const error = { code: 'BOQ_CANDIDATE_INVALID', message: 'no such action', raw: '{"type":"fly"}' };
    const silent = scriptedProposer(() => [{ type: 'error', error }]);
    const { done, recorder } = play({ proposer: silent, limits: { maxSteps: 9, maxMs: 1e9 } });
    expect(await done).to.include({ outcome: 'no-answer', steps: 3 });
    expect(recorder.records.map((record) => record.candidates[0]!.action.type)).to.deep.equal(
      Array(3).fill('wait'),
    );
    expect(recorder.records[0]!.candidateErrors).to.deep.equal([error]);
    expect(recorder.records[0]!.selection.reason).to.include('no such action');

    const sometimes = scriptedProposer((step) => (step % 2 ? [candidate('x')] : [{ type: 'error', error }]));
    const mixed = play({ proposer: sometimes, limits: { maxSteps: 9, maxMs: 1e9 } });
    expect(await mixed.done).to.include({ outcome: 'step-limit', steps: 9 });
  });

  it('scores candidates as they arrive, equal ones once, after the state has begun', async () => {
    const critic = new TableCritic({ goal: 0.9, a: 0.2 });
    const order: string[] = [];
    const proposer = scriptedProposer(() => {
      order.push(`propose after ${critic.begun}`);
      return [candidate('a'), candidate('a'), candidate('goal')];
    });
    const onEvent = (event: EpisodeEvent) => {
      if (event.type === 'candidate')
        order.push(`${event.candidate.action['element']} after ${critic.added.length}`);
    };
    const { done, recorder } = play({ selector: 'best-of-q', critic, proposer, onEvent });
    expect(await done).to.include({ outcome: 'success', steps: 1 });
    expect(critic.added).to.deep.equal(['a', 'goal']);
    expect(order).to.deep.equal(['propose after 1', 'a after 0', 'a after 1', 'goal after 1']);
    expect(recorder.records[0]!.scores).to.deep.equal({ q: [0.2, 0.2, 0.9], spread: [0, 0, 0], v: 0.5 });
    expect(recorder.records[0]!.selection.index).to.equal(2);
  });

  it('asks the critic only for selectors that need it, and needs one for those', async () => {
    const critic = new TableCritic({});
    await play({ critic, selector: 'random' }).done;
    expect(critic.begun).to.equal(0);
    expect(await code(play({ selector: 'best-of-q' }).done)).to.equal('BOQ_INVALID_ARGUMENT');
  });

  it('refuses values that are no numbers', async () => {
    const critic = new TableCritic({ goal: Number.NaN });
    expect(await code(play({ critic, selector: 'best-of-q' }).done)).to.equal('BOQ_NOT_FINITE');
  });

  it('asks before it acts, and stops where the answer is no', async () => {
    const world = new ClickWorld();
    const { done, recorder } = play({ episode: clickEpisode(world), beforeAction: async () => false });
    expect(await done).to.include({ outcome: 'budget', steps: 0 });
    expect(world.acts).to.deep.equal([]);
    expect(recorder.records).to.deep.equal([]);
  });

  it('leaves nothing listening on the signal of its caller', async () => {
    const stop = new AbortController();
    let listening = 0;
    const { addEventListener, removeEventListener } = stop.signal;
    stop.signal.addEventListener = (...args: unknown[]) => {
      listening++;
      Reflect.apply(addEventListener, stop.signal, args);
    };
    stop.signal.removeEventListener = (...args: unknown[]) => {
      listening--;
      Reflect.apply(removeEventListener, stop.signal, args);
    };
    await play({ signal: stop.signal }).done;
    expect(listening).to.equal(0);
  });
});
