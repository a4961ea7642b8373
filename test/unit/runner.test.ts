import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { createMethod } from '../../ts/agent/methods/registry.js';
import type { Episode } from '../../ts/agent/types.js';
import { BoqError } from '../../ts/core/errors.js';
import {
  type EpisodeSource,
  type PlanFault,
  type PlannedEpisode,
  runPlan,
} from '../../ts/evaluation/runner.js';
import { FolderRun } from '../../ts/store/run.js';
import type { StepRecord } from '../../ts/store/types.js';
import { anyPlace, ClickWorld, candidate, clickEpisode, scriptedProposer } from './support/fake-agent.js';

const names = ['goal', 'trap', 'a', 'b', 'c', 'd'];

/** Draws its candidates, so that any leak of order or workers into the randomness shows. */
const drawing = scriptedProposer((_, { random, n }) =>
  Array.from({ length: n }, () => candidate(names[random.below(names.length)]!)),
);

function plan(episodes: number, spec = 'epsilon-greedy@epsilon=0.5', repeats = 1): PlannedEpisode[] {
  const method = createMethod(spec);
  return Array.from({ length: episodes * repeats }, (_, index) => ({
    key: {
      benchmark: 'fake',
      task: `task-${index % 3}`,
      seed: Math.floor(index / repeats),
      policy: 'scripted',
      selector: method.name,
      generation: 'none',
      repeat: index % repeats,
    },
    method,
    critic: null,
  }));
}

/** A source whose episodes take differently long, and that fails where `fault` says so. */
class FakeSource implements EpisodeSource {
  opened: { task: string; seed: number; fresh: boolean }[] = [];
  running = 0;
  mostRunning = 0;
  fault: (task: string, seed: number, attempt: number) => Error | null = () => null;
  onAct: (signal?: AbortSignal) => Promise<void> = async () => {};

  async use<T>(
    task: string,
    seed: number,
    work: (episode: Episode, reset: () => Promise<Episode>) => Promise<T>,
    { fresh }: { fresh: boolean },
  ): Promise<T> {
    const attempt = this.opened.filter((one) => one.task === task && one.seed === seed).length;
    this.opened.push({ task, seed, fresh });
    this.running++;
    this.mostRunning = Math.max(this.mostRunning, this.running);
    try {
      const fault = this.fault(task, seed, attempt);
      const world = new ClickWorld();
      world.beforeAct = async (signal) => {
        for (let turn = 0; turn < (seed * 7) % 5; turn++) await new Promise((done) => setImmediate(done));
        await this.onAct(signal);
        if (fault) throw fault;
      };
      return await work(clickEpisode(world), async () => clickEpisode());
    } finally {
      this.running--;
    }
  }
}

describe('runPlan', () => {
  let root: string;
  const open = (name: string) => FolderRun.create(join(root, name), { kind: 'collect', config: {}, seed: 5 });
  const play = async (run: FolderRun, source: FakeSource, changes = {}): Promise<PlanFault[]> =>
    runPlan({
      run,
      source,
      plan: plan(12),
      proposer: drawing,
      localizer: anyPlace,
      n: 3,
      limits: { maxSteps: 4, maxMs: 60_000 },
      workers: 4,
      retries: 2,
      retryMs: 0,
      ...changes,
    });

  beforeEach(async () => {
    root = await mkdtemp(join(tmpdir(), 'boq-runner-'));
  });
  afterEach(() => rm(root, { recursive: true }));

  async function content(run: FolderRun): Promise<string> {
    const episodes = [];
    for await (const { record, steps } of run.episodes()) {
      const { attempt, startedAt, durationMs, stepsSha256, ...lasting } = record;
      const timeless = steps.map(({ timings, ...step }: StepRecord) => step);
      episodes.push({ lasting, timeless });
    }
    return JSON.stringify(episodes);
  }

  it('records the same episodes with one worker and with four, in either order', async () => {
    const [one, four] = [await open('one'), await open('four')];
    const source = new FakeSource();
    expect(await play(one, new FakeSource(), { workers: 1 })).to.deep.equal([]);
    await play(four, source, { plan: plan(12).reverse() });
    expect(source.mostRunning).to.equal(4);
    const recorded = await content(one);
    expect(recorded).to.equal(await content(four));
    expect(new Set(recorded.match(/"outcome":"[^"]+"/g)).size).to.be.greaterThan(1);
  });

  it('draws anew for each repeat, and alike for selectors', async () => {
    const run = await open('repeats');
    await play(run, new FakeSource(), { plan: [...plan(8, 'first', 2), ...plan(8, 'random', 2)] });
    const offered = new Map<string, string>();
    for await (const { record, steps } of run.episodes()) {
      const { task, seed, repeat, selector } = record.key;
      offered.set(`${selector} ${task} ${seed} ${repeat}`, JSON.stringify(steps[0]!.candidates));
    }
    const firsts = [...offered].filter(([name]) => name.startsWith('first'));
    expect(new Set(firsts.map(([, candidates]) => candidates)).size).to.be.greaterThan(10);
    for (const [name, candidates] of firsts)
      expect(offered.get(name.replace('first', 'random'))).to.equal(candidates);
  });

  it('begins no further episode once told so, and goes on later', async () => {
    const run = await open('until');
    let left = 5;
    const seen: number[] = [];
    const faults = await play(run, new FakeSource(), {
      until: () => left-- <= 0,
      onStep: (record: StepRecord) => seen.push(record.index),
    });
    expect(faults).to.deep.equal([]);
    const records = [];
    for await (const record of run.records()) records.push(record);
    expect(records).to.have.length(5);
    expect(seen).to.have.length(records.reduce((sum, { steps }) => sum + steps, 0));
    await play(run, new FakeSource());
    expect((await run.committed()).size).to.equal(12);
  });

  it('plays only what is not committed yet', async () => {
    const run = await open('resume');
    await play(run, new FakeSource(), { plan: plan(12).slice(0, 5) });
    const source = new FakeSource();
    const seen: number[] = [];
    await play(run, source, { onProgress: ({ done }: { done: number }) => seen.push(done) });
    expect(source.opened).to.have.length(7);
    expect(seen[0]).to.equal(5);
    expect(seen.at(-1)).to.equal(12);
  });

  it('tries a faulty episode again from a fresh start, and records it once', async () => {
    const run = await open('retry');
    const source = new FakeSource();
    source.fault = (_, seed, attempt) =>
      seed === 4 && attempt < 2 ? new BoqError('BOQ_BROWSER', 'the page crashed') : null;
    expect(await play(run, source)).to.deep.equal([]);
    const tries = source.opened.filter(({ seed }) => seed === 4);
    expect(tries.map(({ fresh }) => fresh)).to.deep.equal([false, true, true]);
    expect((await run.committed()).size).to.equal(12);
    expect(await run.attempts()).to.have.length(14);
  });

  it('reports an episode that keeps failing, leaves it uncommitted, and plays the others', async () => {
    const run = await open('faults');
    const source = new FakeSource();
    source.fault = (_, seed) => (seed === 4 ? new BoqError('BOQ_BROWSER', 'the page crashed') : null);
    const faults = await play(run, source);
    expect(faults.map(({ key }) => key.seed)).to.deep.equal([4]);
    expect((await run.committed()).size).to.equal(11);
  });

  it('stops at a fault that no retry mends, and when everything fails', async () => {
    for (const [name, code, opened] of [
      ['disk', 'BOQ_FILE_WRITE', 1],
      ['dead', 'BOQ_BROWSER', 5],
    ] as const) {
      const source = new FakeSource();
      source.fault = () => new BoqError(code, 'broken');
      const work = play(await open(name), source, { workers: 1, retries: 0 });
      const error = await work.then(() => null).catch((reason: unknown) => reason);
      expect(error).to.be.instanceOf(BoqError).with.property('code', code);
      expect(source.opened, name).to.have.length(opened);
    }
  });

  it('leaves running episodes when it is stopped, and goes on from there', async () => {
    const run = await open('stopped');
    const stop = new AbortController();
    const source = new FakeSource();
    source.onAct = async (signal) => {
      if (source.opened.length >= 6) stop.abort();
      signal?.throwIfAborted();
    };
    const error = await play(run, source, { signal: stop.signal, workers: 2 }).catch(
      (reason: unknown) => reason,
    );
    expect(error).to.be.instanceOf(BoqError).with.property('code', 'BOQ_ABORTED');
    const before = (await run.committed()).size;
    expect(before).to.be.lessThan(12);
    await play(run, new FakeSource());
    expect((await run.committed()).size).to.equal(12);

    const unbroken = await open('unbroken');
    await play(unbroken, new FakeSource());
    expect(await content(run)).to.equal(await content(unbroken));
  });

  it('does nothing when it was stopped before', async () => {
    const source = new FakeSource();
    const error = await play(await open('before'), source, { signal: AbortSignal.abort() }).catch(
      (e: unknown) => e,
    );
    expect(error).to.have.property('code', 'BOQ_ABORTED');
    expect(source.opened).to.deep.equal([]);
  });
});
