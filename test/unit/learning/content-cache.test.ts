import { spawn } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect } from 'chai';
import { ContentCache } from '../../../ts/learning/content-cache.js';
import { Embedder, type EmbedRequest, type ForwardPass, noReuse } from '../../../ts/learning/embedder.js';
import { contentKey } from '../../../ts/learning/key-table.js';
import { renderChat } from '../../../ts/learning/templates.js';
import { tinyCheckpoint } from '../../support/checkpoint.js';
import { rejection } from '../../support/rejection.js';

describe('the content cache', () => {
  let folder: string;
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'boq-cache-'));
  });
  afterEach(() => rm(folder, { recursive: true, force: true }));

  const entry = (name: string, first: number) => ({
    key: contentKey(name),
    vector: Float32Array.of(first, -0, 1e-30, 2),
    tokens: 7,
  });

  it('gives back what was put, under its fingerprint and width alone, also after reopening', async () => {
    const cache = await ContentCache.open(folder);
    await cache.put('aaaa', [entry('x', 1), entry('y', 2)]);
    await cache.put('bbbb', [entry('x', 3)]);
    await cache.close();
    await using again = await ContentCache.open(folder);
    expect(again.get('aaaa', contentKey('x'), 4)).to.deep.equal({ vector: entry('x', 1).vector, tokens: 7 });
    expect(again.get('bbbb', contentKey('x'), 4)?.vector[0]).to.equal(3);
    expect(again.get('bbbb', contentKey('y'), 4)).to.equal(null);
    expect(again.get('aaaa', contentKey('x'), 8), 'another width').to.equal(null);
    expect(again.counts).to.deep.equal({ hits: 2, misses: 2 });
  });

  it('is emptied when it has grown beyond its limit', async () => {
    const cache = await ContentCache.open(folder);
    await cache.put('aaaa', [entry('x', 1)]);
    await cache.close();
    await using small = await ContentCache.open(folder, 1);
    expect(small.get('aaaa', contentKey('x'), 4)).to.equal(null);
  });

  it('names a folder that it cannot use', async () => {
    await writeFile(join(folder, 'file'), '');
    const error = await rejection(ContentCache.open(join(folder, 'file')));
    expect(error.code).to.equal('BOQ_FILE_WRITE');
    expect(error.message).to.contain('--no-cache');
  });

  it('is shared by processes, and whole after kill -9 of one of them', async () => {
    const told = await Promise.all([0, 1000].map((from) => killedAfterBatches(folder, from, 5)));
    await using cache = await ContentCache.open(folder);
    for (const [index, from] of [0, 1000].entries()) {
      const last = told[index] as number;
      for (let i = 10 * from; i < 10 * (last + 1); i++) {
        expect(cache.get('fingerprint', contentKey(`${i}`), 4)?.vector[0], `entry ${i}`).to.equal(i);
      }
    }
  });

  it('spares the forward pass, changes no vector, and counts', async () => {
    const calls: number[] = [];
    const native: ForwardPass = {
      info: {
        width: 2,
        layers: 1,
        device: 'cpu',
        dtype: 'float32',
        maxTokens: 1000,
        imageTokenId: 151655,
        parameterCount: 1,
      },
      embed: async (items) => {
        calls.push(items.length);
        return {
          vectors: Float32Array.from(items.flatMap(({ ids }) => [ids.length, ids.at(-2) ?? 0])),
          tokens: Int32Array.from(items, ({ ids }) => ids.length),
          reuse: { ...noReuse(), tokens: 10, computedTokens: 7 },
        };
      },
      dispose: async () => undefined,
    };
    await using cache = await ContentCache.open(folder);
    const path = await tinyCheckpoint();
    const plain = await Embedder.load({ path }, async () => native);
    const cached = await Embedder.load({ path, cache }, async () => native);
    const ask = (text: string): EmbedRequest => ({ prompt: renderChat([{ role: 'user', content: [text] }]) });
    const requests = ['a', 'some more words', 'c'].map(ask);
    const expected = await plain.embed(requests);
    expect((await cached.embed(requests.slice(0, 2))).cached).to.equal(0);
    const mixed = await cached.embed([ask('c'), ...requests.slice(0, 2)]);
    expect(mixed.cached).to.equal(2);
    expect([...mixed.computedTokens.subarray(1)], 'the cache computes nothing').to.deep.equal([0, 0]);
    expect(mixed.computedTokens[0]).to.equal(mixed.tokens[0]);
    expect([...mixed.vectors.subarray(2), ...mixed.vectors.subarray(0, 2)]).to.deep.equal([
      ...expected.vectors,
    ]);
    expect([...mixed.tokens.subarray(1), mixed.tokens[0]]).to.deep.equal([...expected.tokens]);
    expect((await cached.embed(requests)).cached).to.equal(3);
    expect(calls).to.deep.equal([3, 2, 1]);
    expect(cache.counts).to.deep.equal({ hits: 5, misses: 3 });
    expect(cached.reuse).to.include({ tokens: 20, computedTokens: 14 });
  });

  it('is not asked for what cannot be embedded', async () => {
    const none = { info: { width: 2, imageTokenId: 151655, dtype: 'float32' } } as unknown as ForwardPass;
    const embedder = await Embedder.load({ path: await tinyCheckpoint() }, async () => none);
    const empty = await rejection(embedder.embed([{ prompt: [] }]));
    expect(empty.message).to.contain('at least one token');
    const prompt = renderChat([{ role: 'user', content: ['no place'] }]);
    const surplus = await rejection(
      embedder.embed([{ prompt, images: [{ data: new Uint8Array(3), width: 1, height: 1 }] }]),
    );
    expect(surplus.message).to.contain('0 image places, but 1 came');
  });
});

/** @returns the last batch the child reported before it was killed. */
function killedAfterBatches(folder: string, from: number, batches: number): Promise<number> {
  const script = fileURLToPath(new URL('../../support/cache-child.ts', import.meta.url));
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, ['--import', 'tsx', script, folder, String(from)], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    let text = '';
    child.stdout.on('data', (chunk: Buffer) => {
      text += chunk.toString();
      if (text.split('\n').length > batches) child.kill('SIGKILL');
    });
    child.on('exit', (code, signal) => {
      if (signal === 'SIGKILL') resolve(Number(text.trim().split('\n').at(-1)));
      else reject(new Error(`the child ended with ${code} before it was killed`));
    });
  });
}
