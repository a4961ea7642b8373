import { spawn } from 'node:child_process';
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect } from 'chai';
import { readSafetensors, type Tensor } from '../../../ts/core/safetensors.js';
import { type EmbedProgress, embedRun } from '../../../ts/learning/embed-run.js';
import { noReuse } from '../../../ts/learning/embedder.js';
import { candidate, FakeEmbedder, FakeRun, fakeStep, fakeWidth } from '../../support/fake-run.js';
import { rejection } from '../../support/rejection.js';

const views = {
  I64: (buffer: ArrayBufferLike) => Array.from(new BigInt64Array(buffer), Number),
  I32: (buffer: ArrayBufferLike) => Array.from(new Int32Array(buffer)),
  F32: (buffer: ArrayBufferLike) => Array.from(new Float32Array(buffer)),
  U8: (buffer: ArrayBufferLike) => Array.from(new Uint8Array(buffer)),
};

function values(tensor: Tensor | undefined): number[] {
  if (tensor === undefined) throw new Error('no such tensor');
  return views[tensor.dtype as keyof typeof views](tensor.data.buffer);
}

/** Every file that a reader of the folder may open, with its bytes. */
async function contents(folder: string): Promise<Record<string, string>> {
  const files: Record<string, string> = {};
  for (const name of (await readdir(folder)).sort()) {
    files[name] = (await readFile(join(folder, name))).toString('base64');
  }
  return files;
}

describe('the embed stage', () => {
  let base: string;
  beforeEach(async () => {
    base = await mkdtemp(join(tmpdir(), 'boq-embed-'));
  });
  afterEach(() => rm(base, { recursive: true, force: true }));

  it('writes transitions with their rewards, ends and candidates', async () => {
    const ok = candidate('button "OK"');
    const cancel = candidate('button "Cancel"');
    const run = new FakeRun(base)
      .add('login', 1, 'success', [fakeStep(0, [ok, cancel, ok], 1, true), fakeStep(1, [ok], 0)])
      .add('buy', 2, 'step-limit', [fakeStep(0, [cancel, ok], 0)])
      .add('login', 3, 'failure', [fakeStep(0, [cancel], 0)]);
    const { folder, manifest } = await embedRun(run, new FakeEmbedder());
    expect(manifest).to.include({ version: 1, transitions: 4, candidates: 7, episodes: 3, width: fakeWidth });
    expect(manifest.taskNames).to.deep.equal(['login', 'buy']);
    expect(manifest.successRate).to.be.closeTo(1 / 3, 1e-12);
    expect(manifest.streams.state.rows, 'two episodes of one task begin alike').to.equal(4);
    expect(manifest.streams.action.rows, 'two different candidates in all').to.equal(2);
    expect(manifest.streams.task.rows).to.equal(2);

    const index = await readSafetensors(join(folder, 'index.safetensors'));
    const column = (name: string): number[] => values(index.get(name));
    expect(column('state')).to.deep.equal([0, 1, 2, 0]);
    expect(column('next_state'), 'a limit has a state after it').to.deep.equal([1, -1, 3, -1]);
    expect(column('action')).to.deep.equal([1, 0, 1, 1]);
    expect(column('task')).to.deep.equal([0, 0, 1, 0]);
    expect(column('reward')).to.deep.equal([0, 1, 0, 0]);
    expect(column('done')).to.deep.equal([0, 1, 1, 1]);
    expect(column('timeout')).to.deep.equal([0, 0, 1, 0]);
    expect(column('explored')).to.deep.equal([1, 0, 0, 0]);
    expect(column('chosen')).to.deep.equal([1, 0, 0, 0]);
    expect(column('candidate_offset')).to.deep.equal([0, 3, 4, 6, 7]);
    expect(column('candidate_action')).to.deep.equal([0, 1, 0, 0, 1, 0, 1]);
    expect(column('episode_first')).to.deep.equal([0, 2, 3]);
    expect(column('episode_steps')).to.deep.equal([2, 1, 1]);
    expect(column('episode_task')).to.deep.equal([0, 1, 0]);
    expect(column('episode_success')).to.deep.equal([1, 0, 0]);
    const lines = (await readFile(join(folder, 'episodes.jsonl'), 'utf8')).trim().split('\n');
    expect(lines.map((line) => JSON.parse(line).key.task)).to.deep.equal(['login', 'buy', 'login']);
  });

  it('puts the vector of each content into its row', async () => {
    const run = new FakeRun(base).fill(9);
    const embedder = new FakeEmbedder();
    const { folder, manifest } = await embedRun(run, embedder, { rowsPerShard: 5, batchSize: 3 });
    expect(Math.max(...embedder.calls)).to.equal(3);
    expect(manifest.streams.action.shards).to.have.length(Math.ceil(manifest.streams.action.rows / 5));
    const again = await embedRun(new FakeRun(join(base, 'other')).fill(9), new FakeEmbedder());
    for (const stream of ['state', 'action', 'task'] as const) {
      const rows = async (at: string, shards: string[]): Promise<number[]> => {
        const parts = shards.map(async (file) => values((await readSafetensors(join(at, file))).get('rows')));
        return (await Promise.all(parts)).flat();
      };
      const sharded = await rows(folder, manifest.streams[stream].shards);
      expect(sharded).to.deep.equal(await rows(again.folder, again.manifest.streams[stream].shards));
      expect(new Set(chunks(sharded)).size, `${stream} rows differ`).to.equal(manifest.streams[stream].rows);
    }
  });

  it('does nothing for a run that is embedded, and embeds only what a longer run adds', async () => {
    await embedRun(new FakeRun(base).fill(6), new FakeEmbedder(), { rowsPerShard: 4 });
    const idle = new FakeEmbedder();
    const same = await embedRun(new FakeRun(base).fill(6), idle, { rowsPerShard: 4 });
    expect(same.changed).to.equal(false);
    expect(idle.calls).to.deep.equal([]);

    const more = new FakeEmbedder();
    const grown = await embedRun(new FakeRun(base).fill(12), more, { rowsPerShard: 4 });
    const fresh = await embedRun(new FakeRun(join(base, 'fresh')).fill(12), new FakeEmbedder(), {
      rowsPerShard: 4,
    });
    expect(grown.embedded).to.be.greaterThan(0).and.lessThan(fresh.embedded);
    expect(await contents(grown.folder)).to.deep.equal(await contents(fresh.folder));
  });

  it('continues after kill -9 and ends with the same bytes', async () => {
    const child = fileURLToPath(new URL('../../support/embed-child.ts', import.meta.url));
    const fresh = await embedRun(new FakeRun(join(base, 'fresh')).fill(60), new FakeEmbedder(), {
      rowsPerShard: 64,
    });
    for (const calls of [1, 9, 25]) {
      const target = join(base, `killed-${calls}`);
      await killedAfter(child, [target, '60', '4'], calls);
      const resumed = await embedRun(new FakeRun(target).fill(60), new FakeEmbedder(), { rowsPerShard: 64 });
      if (calls > 1) expect(resumed.embedded, `after ${calls}`).to.be.lessThan(fresh.embedded);
      expect(await contents(resumed.folder), `after ${calls}`).to.deep.equal(await contents(fresh.folder));
    }
  });

  it('drops rows whose keys did not reach the disk', async () => {
    const first = await embedRun(new FakeRun(base).fill(6), new FakeEmbedder());
    const before = await contents(first.folder);
    await rm(join(first.folder, 'manifest.json'));
    const keys = await readFile(join(first.folder, 'state.keys'));
    await writeFile(join(first.folder, 'state.keys'), keys.subarray(0, 3 * 16 + 5));
    const again = await embedRun(new FakeRun(base).fill(6), new FakeEmbedder());
    expect(again.embedded).to.equal(first.manifest.streams.state.rows - 3);
    expect(await contents(again.folder)).to.deep.equal(before);
  });

  it('keeps what was done when it is stopped', async () => {
    const stop = new AbortController();
    const embedder = new FakeEmbedder();
    embedder.onCall = (calls) => {
      if (calls === 6) stop.abort();
    };
    const options = { batchSize: 4, signal: stop.signal };
    const stopped = await rejection(embedRun(new FakeRun(base).fill(40), embedder, options));
    expect(stopped.code).to.equal('BOQ_ABORTED');
    const rest = await embedRun(new FakeRun(base).fill(40), new FakeEmbedder());
    const fresh = await embedRun(new FakeRun(join(base, 'fresh')).fill(40), new FakeEmbedder());
    expect(rest.embedded).to.be.lessThan(fresh.embedded);
    expect(await contents(rest.folder)).to.deep.equal(await contents(fresh.folder));
  });

  it('refuses vectors that are not numbers, runs without episodes, and two writers at once', async () => {
    const broken = new FakeEmbedder();
    broken.embed = async (requests) => ({
      vectors: new Float32Array(requests.length * fakeWidth).fill(Number.NaN),
      tokens: new Int32Array(requests.length),
      computedTokens: new Int32Array(requests.length),
      cached: 0,
      largestImage: 0,
      reuse: noReuse(),
    });
    const bad = await rejection(embedRun(new FakeRun(base).fill(2), broken));
    expect(bad.code).to.equal('BOQ_NOT_FINITE');
    expect((await rejection(embedRun(new FakeRun(base), new FakeEmbedder()))).code).to.equal(
      'BOQ_DATA_EMPTY',
    );

    const slow = new FakeEmbedder();
    let release = (): void => undefined;
    const entered = new Promise<void>((resolve) => {
      slow.onCall = () => {
        resolve();
        return new Promise((go) => {
          release = go;
        });
      };
    });
    const running = embedRun(new FakeRun(base).fill(2), slow);
    await entered;
    const second = await rejection(embedRun(new FakeRun(base).fill(2), new FakeEmbedder()));
    expect(second.code).to.equal('BOQ_BUSY');
    slow.onCall = () => undefined;
    release();
    expect((await running).changed).to.equal(true);
  });

  it('reports steps, rows and reuse', async () => {
    const seen: EmbedProgress[] = [];
    await embedRun(new FakeRun(base).fill(8), new FakeEmbedder(), {
      onProgress: (progress) => seen.push(progress),
    });
    const last = seen.at(-1);
    expect(last).to.include({ steps: 20, totalSteps: 20, secondsLeft: 0 });
    expect(last?.embedded).to.be.greaterThan(20);
    expect(last?.reused).to.be.greaterThan(20);
  });
});

function chunks(rows: readonly number[]): string[] {
  return Array.from({ length: rows.length / fakeWidth }, (_, i) =>
    rows.slice(i * fakeWidth, (i + 1) * fakeWidth).join(),
  );
}

/** Runs a child and kills it, without a chance to tidy up, once it has said a number. */
function killedAfter(script: string, args: string[], calls: number): Promise<void> {
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, ['--import', 'tsx', script, ...args], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    let text = '';
    child.stdout.on('data', (chunk: Buffer) => {
      text += chunk.toString();
      if (text.split('\n').includes(String(calls))) child.kill('SIGKILL');
    });
    child.on('exit', (code, signal) => {
      if (signal === 'SIGKILL') resolve();
      else reject(new Error(`the child ended with ${code} before it was killed`));
    });
  });
}
