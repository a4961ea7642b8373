import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { randomSource } from '../../ts/core/random.js';
import { Scorer } from '../../ts/native/scorer.js';
import type { NativeScoreBatch } from '../../ts/native/surface.js';
import { fakeWidth as width } from '../support/fake-run.js';
import { codeOf } from '../support/native.js';
import { embeddedRun, trainedModel } from '../support/trained.js';

const random = randomSource(['scorer']);
const rows = (count: number): Float32Array =>
  Float32Array.from({ length: count * width }, () => random.next());
const row = (values: Float32Array, index: number): Float32Array =>
  values.subarray(index * width, (index + 1) * width);

/** Two states, the first with three candidates and the second with two. */
const batch: NativeScoreBatch = {
  states: rows(2),
  tasks: rows(2),
  actions: rows(5),
  owner: Int32Array.of(0, 0, 0, 1, 1),
};

describe('scorer', () => {
  let folder: string;
  let model: string;
  let scorer: Scorer;
  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'boq-scorer-'));
    model = await trainedModel(await embeddedRun(join(folder, 'run')), join(folder, 'model'), { heads: 2 });
    scorer = await Scorer.load({ path: model, device: 'cpu' });
  });
  after(async () => {
    await scorer.dispose();
    await rm(folder, { recursive: true });
  });

  it('knows what it was trained on', () => {
    expect(scorer.info).to.deep.equal({ width, heads: 2, fingerprint: 'fake0000fake0000' });
  });

  it('gives a value and a spread a candidate, and a value a state', async () => {
    const { q, spread, v } = await scorer.score(batch);
    expect([q.length, spread.length, v.length]).to.deep.equal([5, 5, 2]);
    for (const value of [...q, ...v]) expect(value).to.satisfy(Number.isFinite);
    expect(new Set(q).size).to.equal(5);
    for (const value of spread) expect(value).to.be.above(0);
  });

  it('gives a candidate the same value alone and among others, and a candidate that comes twice', async () => {
    const together = await scorer.score(batch);
    for (const [index, owner] of batch.owner.entries()) {
      const alone = await scorer.score({
        states: row(batch.states, owner),
        tasks: row(batch.tasks, owner),
        actions: row(batch.actions, index),
        owner: Int32Array.of(0),
      });
      expect(alone.q[0]).to.be.closeTo(together.q[index]!, 1e-6);
      expect(alone.v[0]).to.be.closeTo(together.v[owner]!, 1e-6);
    }
    const twice = await scorer.score({
      states: row(batch.states, 0),
      tasks: row(batch.tasks, 0),
      actions: new Float32Array([...row(batch.actions, 0), ...row(batch.actions, 0)]),
      owner: Int32Array.of(0, 0),
    });
    expect(twice.q[0]).to.be.closeTo(twice.q[1]!, 1e-6);
  });

  it('takes a batch without candidates, for V alone', async () => {
    const { states, tasks } = batch;
    const none = { states, tasks, actions: new Float32Array(0), owner: new Int32Array(0) };
    const { q, v } = await scorer.score(none);
    expect([q.length, v.length]).to.deep.equal([0, 2]);
  });

  const wrong: [string, Partial<Record<keyof NativeScoreBatch, unknown>>, string][] = [
    ['half a row', { states: new Float32Array(2 * width - 1) }, 'BOQ_SHAPE_MISMATCH'],
    ['a task too few', { tasks: rows(1) }, 'BOQ_SHAPE_MISMATCH'],
    ['an owner too few', { owner: Int32Array.of(0, 0, 0, 1) }, 'BOQ_SHAPE_MISMATCH'],
    ['an owner beyond the states', { owner: Int32Array.of(0, 0, 0, 1, 2) }, 'BOQ_INVALID_ARGUMENT'],
    ['an owner below 0', { owner: Int32Array.of(-1, 0, 0, 1, 1) }, 'BOQ_INVALID_ARGUMENT'],
    ['NaN', { actions: rows(5).fill(Number.NaN, 3, 4) }, 'BOQ_NOT_FINITE'],
    ['infinity', { states: rows(2).fill(Number.POSITIVE_INFINITY, 9, 10) }, 'BOQ_NOT_FINITE'],
    ['doubles', { actions: new Float64Array(5 * width) }, 'BOQ_INVALID_ARGUMENT'],
    ['plain numbers', { owner: [0, 0, 0, 1, 1] }, 'BOQ_INVALID_ARGUMENT'],
    ['no tasks', { tasks: undefined }, 'BOQ_INVALID_ARGUMENT'],
    ['shared memory', { tasks: new Float32Array(new SharedArrayBuffer(64)) }, 'BOQ_INVALID_ARGUMENT'],
  ];
  for (const [name, change, code] of wrong) {
    it(`refuses ${name}`, async () => {
      expect(await codeOf(() => scorer.score({ ...batch, ...change } as NativeScoreBatch))).to.equal(code);
    });
  }

  it('says where a number is not finite', async () => {
    const actions = rows(5).fill(Number.NaN, width + 3, width + 4);
    const error = await scorer.score({ ...batch, actions }).catch((cause: Error) => cause);
    expect((error as Error).message)
      .to.include('batch.actions')
      .and.include('row 1, column 3');
  });

  it('refuses calls after its end, which may come while it works', async () => {
    const other = await Scorer.load({ path: model, device: 'cpu' });
    const running = other.score(batch);
    const disposed = other.dispose();
    expect(await codeOf(() => other.score(batch))).to.equal('BOQ_DISPOSED');
    expect((await running).q.length).to.equal(5);
    await disposed;
    await other.dispose();
  });
});
