/** Which actions are taken for irreversible, and what the loop does about those that are not confirmed. */
import { expect } from 'chai';
import type { RunEpisodeOptions } from '../../ts/agent/episode.js';
import { type IrreversibleAction, irreversibleKind } from '../../ts/agent/irreversible.js';
import { runEpisode } from '../../ts/agent/loop.js';
import { createSelector } from '../../ts/agent/selectors/registry.js';
import type { Consequence } from '../../ts/agent/types.js';
import { isBoqError } from '../../ts/core/errors.js';
import { randomSource } from '../../ts/core/random.js';
import type { Action } from '../../ts/store/types.js';
import {
  anyPlace,
  ClickWorld,
  candidate,
  clickEpisode,
  MemoryRecorder,
  scriptedProposer,
} from './support/fake-agent.js';

const click = (element: string): Action => ({ type: 'click', element });
const control = (words: string): Consequence => ({ words, isField: false });

describe('irreversible actions', () => {
  for (const [words, kind] of [
    ['button "Pay 20 €"', 'pay'],
    ['button "PLACE YOUR ORDER"', 'pay'],
    ['link "Buy now"', 'pay'],
    ['button "Jetzt kostenpflichtig bestellen"', 'pay'],
    ['button "Überweisen"', 'pay'],
    ['button "Delete account"', 'delete'],
    ['clickable "trash" in "Ann: hello"', 'delete'],
    ['button "Cancel my subscription"', 'delete'],
    ['button "Supprimer"', 'delete'],
    ['button "Send"', 'send'],
    ['button "Post reply"', 'send'],
    ['button "Publicar"', 'send'],
    ['button "Next"', null],
    ['button "Cancel"', null],
    ['button "Postpone"', null],
    ['link "Payment methods"', null],
    ['link "Recorders"', null],
    ['checkbox "Delete after reading"', null],
    ['option "Buy"', null],
    ['', null],
  ] as const) {
    it(`${words || 'nothing'} ${kind ? `is one that ${kind}s` : 'can be taken back'}`, () => {
      expect(irreversibleKind(click('button'), control(words))).to.equal(kind);
    });
  }

  it('believes the page and the policy, whichever says so', () => {
    expect(irreversibleKind(click('button "Pay now"'), control('button "OK"'))).to.equal('pay');
    expect(irreversibleKind(click('button "OK"'), control('button "Pay now"'))).to.equal('pay');
  });

  it('knows fields that Enter sends', () => {
    const write: Action = { type: 'write', element: 'textbox', text: 'hi', submit: true };
    const field = (words: string): Consequence => ({ words, isField: true });
    expect(irreversibleKind(write, field('textbox "Write a message"'))).to.equal('send');
    expect(irreversibleKind(write, field('searchbox "Search orders"'))).to.equal(null);
    expect(irreversibleKind(write, null)).to.equal(null);
  });
});

describe('confirmation', () => {
  /** A world whose control under the point is called as the policy calls it. */
  class NamedWorld extends ClickWorld {
    async consequence(action: Action): Promise<Consequence> {
      return control(String(action['element']));
    }
  }

  function play(world: ClickWorld, confirm?: NonNullable<RunEpisodeOptions['confirm']>, maxMs = 60_000) {
    const recorder = new MemoryRecorder();
    const heard: string[] = [];
    const proposer = scriptedProposer((step, { history }) => {
      heard.push(...history.slice(-1).map(({ result }) => result.message));
      return [candidate(step === 0 ? 'button "Send"' : 'goal')];
    });
    const result = runEpisode({
      episode: clickEpisode(world),
      proposer,
      selector: createSelector('first'),
      localizer: anyPlace,
      critic: null,
      n: 1,
      limits: { maxSteps: 4, maxMs },
      random: (step, purpose) => randomSource([step, purpose]),
      recorder,
      ...(confirm ? { confirm } : {}),
    });
    return { result, recorder, heard };
  }

  it('leaves undone what is not confirmed, tells the policy, and goes on', async () => {
    const world = new NamedWorld();
    const asked: IrreversibleAction[] = [];
    const { result, recorder, heard } = play(world, async (action) => {
      asked.push(action);
      return false;
    });
    expect(await result).to.include({ outcome: 'success', steps: 2 });
    expect(asked).to.deep.equal([
      {
        kind: 'send',
        action: click('button "Send"'),
        target: 'button "Send"',
        url: 'http://page.test/0',
        step: 0,
      },
    ]);
    expect(world.acts).to.deep.equal([click('goal')]);
    expect(recorder.records[0]!.result.ok).to.equal(false);
    expect(heard[0]).to.include('not done').and.include('button "Send"');
  });

  it('does what is confirmed, and asks nothing where nobody is to be asked', async () => {
    const confirmed = new NamedWorld();
    await play(confirmed, async () => true).result;
    expect(confirmed.acts).to.have.length(2);
    const unasked = new NamedWorld();
    await play(unasked).result;
    expect(unasked.acts).to.have.length(2);
  });

  it('does not wait beyond the time limit', async () => {
    const world = new NamedWorld();
    const { result } = play(
      world,
      (_, signal) =>
        new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason))),
      20,
    );
    expect(await result).to.include({ outcome: 'time-limit', steps: 0 });
    expect(world.acts).to.deep.equal([]);
  });

  it('passes on what breaks while asking', async () => {
    const { result } = play(new NamedWorld(), async () => {
      throw new Error('nobody there');
    });
    const error = await result.catch((reason: unknown) => reason);
    expect(String(error)).to.include('nobody there');
    expect(isBoqError(error)).to.equal(false);
  });
});
