import { expect } from 'chai';
import { ConstantCritic, type CriticScorer, QCritic } from '../../../ts/learning/critic.js';
import type { NativeScoreBatch } from '../../../ts/native/surface.js';
import { candidate, FakeEmbedder, fakeWidth } from '../../support/fake-run.js';
import { rejection } from '../../support/rejection.js';

/** Q is the first number of the action's vector, V that of the state's. */
class FakeScorer implements CriticScorer {
  readonly info = { fingerprint: new FakeEmbedder().fingerprint };
  readonly batches: NativeScoreBatch[] = [];

  async score(batch: NativeScoreBatch) {
    this.batches.push(batch);
    const first = (rows: Float32Array): Float32Array => rows.filter((_, i) => i % fakeWidth === 0);
    return { q: first(batch.actions), spread: new Float32Array(batch.owner.length), v: first(batch.states) };
  }
}

const state = (text: string) => ({
  instruction: 'do it',
  history: [],
  screenshot: { bytes: Buffer.from(text) },
});

describe('the critic', () => {
  it('scores candidates in their order, equal ones once', async () => {
    const scorer = new FakeScorer();
    const critic = new QCritic(new FakeEmbedder(), scorer, 'models/m');
    const step = critic.begin(state('page'));
    const names = ['a', 'b', 'a', 'c'];
    for (const name of names) step.add(candidate(name));
    const { q, spread, v } = await step.scores();
    expect(q).to.have.length(4);
    expect(q[0]).to.equal(q[2]).and.not.to.equal(q[1]);
    expect(spread).to.deep.equal([0, 0, 0, 0]);
    expect(v).to.be.a('number');
    expect(scorer.batches[0]?.owner).to.have.length(3);

    const alone = critic.begin(state('page'));
    alone.add(candidate('b'));
    expect((await alone.scores()).q).to.deep.equal([q[1]]);
  });

  it('tells the tokens that the embedder computed for a step, each content once', async () => {
    const critic = new QCritic(new FakeEmbedder(), new FakeScorer(), 'models/m');
    const costs = async (page: string, ...names: string[]) => {
      const step = critic.begin(state(page));
      for (const name of names) step.add(candidate(name));
      return (await step.scores()).usage;
    };
    const usage = { purpose: 'embedder', model: 'fake', outputTokens: 0 };
    expect(await costs('page', 'a', 'b', 'a')).to.deep.equal([{ ...usage, inputTokens: 4 * fakeWidth }]);
    expect(await costs('page', 'b', 'c')).to.deep.equal([{ ...usage, inputTokens: fakeWidth }]);
    expect(await costs('page', 'a', 'c')).to.deep.equal([]);
  });

  it('reads of a candidate what the embedder of its training read', async () => {
    const reading = async (actionView: 'whole' | 'thought') => {
      const embedder = Object.assign(new FakeEmbedder(), { profile: { actionView } });
      const step = new QCritic(embedder, new FakeScorer(), 'models/m').begin(state('page'));
      for (const name of ['a', 'b']) step.add(candidate(name));
      return (await step.scores()).q;
    };
    const [whole, thought] = [await reading('whole'), await reading('thought')];
    expect(whole[0]).not.to.equal(whole[1]);
    expect(thought[0]).to.equal(thought[1]);
  });

  it('starts with the state before any candidate is known', async () => {
    const embedder = new FakeEmbedder();
    const started = new Promise<number>((resolve) => {
      embedder.onCall = resolve;
    });
    new QCritic(embedder, new FakeScorer(), 'models/m').begin(state('page'));
    expect(await started).to.equal(1);
    expect(embedder.calls, 'state and task together').to.deep.equal([2]);
  });

  it('joins the requests of concurrent episodes, and collects while the device is busy', async () => {
    const embedder = new FakeEmbedder();
    let release = (): void => undefined;
    const busy = new Promise<void>((resolve) => {
      embedder.onCall = (calls) => {
        if (calls > 1) return;
        resolve();
        return new Promise((go) => {
          release = go;
        });
      };
    });
    const critic = new QCritic(embedder, new FakeScorer(), 'models/m');
    const first = critic.begin(state('page 0'));
    first.add(candidate('a'));
    await busy;
    const others = [1, 2, 3, 4].map((i) => {
      const step = critic.begin(state(`page ${i}`));
      step.add(candidate('a'));
      step.add(candidate(`b${i}`));
      return step.scores();
    });
    release();
    const scores = await Promise.all(others);
    await first.scores();
    expect(new Set(scores.map(({ q }) => q[0])).size, 'the same action, embedded once').to.equal(1);
    expect(embedder.calls, 'one call for all that came meanwhile').to.deep.equal([3, 8]);
    expect(critic.counts).to.deep.equal({ requests: 3 + 16, hits: 4 + 4, calls: 2 });
  });

  it('passes a failure to those who wait for it, and tries that content again afterwards', async () => {
    const embedder = new FakeEmbedder();
    const critic = new QCritic(embedder, new FakeScorer(), 'models/m');
    embedder.onCall = () => {
      throw new Error('out of luck');
    };
    const step = critic.begin(state('page'));
    step.add(candidate('a'));
    const outcome = await step.scores().then(
      () => 'fulfilled',
      (error: Error) => error.message,
    );
    expect(outcome).to.equal('out of luck');
    embedder.onCall = () => undefined;
    const again = critic.begin(state('page'));
    again.add(candidate('a'));
    expect((await again.scores()).q).to.have.length(1);
  });

  it('refuses a model that was trained on other embeddings, naming both', () => {
    const scorer = new FakeScorer();
    const other = {
      info: { fingerprint: 'ffffffffffffffff' },
      score: (batch: NativeScoreBatch) => scorer.score(batch),
    };
    expect(() => new QCritic(new FakeEmbedder(), other, 'models/m'))
      .to.throw(/models\/m has fingerprint ffffffffffffffff .* models\/fake has fake0000fake0000/)
      .with.property('code', 'BOQ_FINGERPRINT_MISMATCH');
  });

  it('gives up where its caller has', async () => {
    const abort = new AbortController();
    const step = new QCritic(new FakeEmbedder(), new FakeScorer(), 'm').begin({
      ...state('p'),
      signal: abort.signal,
    });
    abort.abort();
    expect((await rejection(step.scores())).code).to.equal('BOQ_ABORTED');
  });

  it('has a control that knows nothing', async () => {
    const step = new ConstantCritic().begin(state('page'));
    step.add(candidate('a'));
    step.add(candidate('b'));
    expect(await step.scores()).to.deep.equal({ q: [0, 0], spread: [0, 0], v: 0 });
  });
});
