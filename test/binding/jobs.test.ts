import { expect } from 'chai';
import { NativeEmbedder } from '../../ts/native/embedder.js';
import { codeOf, loadTiny, textItems, tinyOptions } from '../support/native.js';

describe('jobs', () => {
  let embedder: NativeEmbedder;
  before(async () => {
    embedder = await loadTiny();
  });
  after(() => embedder.dispose());

  it('run in the order in which they were asked for', async () => {
    const order: number[] = [];
    const counts = [60, 1, 30, 2];
    await Promise.all(
      counts.map(async (count, index) => {
        await embedder.embed(textItems(count));
        order.push(index);
      }),
    );
    expect(order).to.deep.equal([0, 1, 2, 3]);
  });

  it('leave the event loop free', async () => {
    let turns = 0;
    let isDone = false;
    const turn = (): void => {
      turns += 1;
      if (!isDone) setImmediate(turn);
    };
    setImmediate(turn);
    await embedder.embed(textItems(100));
    isDone = true;
    expect(turns).to.be.above(100);
  });

  it('take copies: changing the arrays afterwards changes nothing', async () => {
    const [item] = textItems(1);
    if (item === undefined) throw new Error('no item');
    const expected = await embedder.embed([item]);
    const running = embedder.embed([item]);
    item.ids.fill(5);
    expect((await running).vectors).to.deep.equal(expected.vectors);
  });

  it('do not begin for a signal that was aborted before', async () => {
    const signal = AbortSignal.abort();
    expect(await codeOf(() => embedder.embed(textItems(1), { signal }))).to.equal('BOQ_ABORTED');
  });

  it('end early when they are aborted, running or waiting, and the embedder stays usable', async () => {
    const controller = new AbortController();
    const { signal } = controller;
    const ends: string[] = [];
    const start = async (name: string): Promise<void> => {
      ends.push(`${name} ${await codeOf(() => embedder.embed(textItems(5_000), { signal }))}`);
    };
    const both = Promise.all([start('running'), start('waiting')]);
    await new Promise(setImmediate);
    controller.abort();
    await both;
    expect(ends.sort()).to.deep.equal(['running BOQ_ABORTED', 'waiting BOQ_ABORTED']);
    expect((await embedder.embed(textItems(1))).tokens.length).to.equal(1);
  });

  it('finish when their embedder is disposed meanwhile; later calls are refused', async () => {
    const other = await loadTiny();
    const running = other.embed(textItems(50));
    const disposed = other.dispose();
    expect(await codeOf(() => other.embed(textItems(1)))).to.equal('BOQ_DISPOSED');
    expect((await running).tokens.length).to.equal(50);
    await disposed;
    await other.dispose();
    await other[Symbol.asyncDispose]();
  });

  it('carry the stack of the caller in their errors', async () => {
    async function namedCaller(): Promise<void> {
      await embedder.embed([{ ids: Int32Array.of(-1), images: [] }]);
    }
    const error = await namedCaller().then(
      () => undefined,
      (cause: Error) => cause,
    );
    expect(error?.name).to.equal('BoqError');
    expect(error?.stack).to.include('namedCaller');
  });

  it('do not let memory grow, whether they succeed or fail', async () => {
    const round = async (): Promise<void> => {
      const good = textItems(2);
      const bad = [{ ids: Int32Array.of(400, -1), images: [] }];
      const broken = [
        { ids: Int32Array.of(1), images: [{ data: new Uint8Array(300_000), width: 1, height: 1 }] },
      ];
      for (let i = 0; i < 100; i += 1) {
        await embedder.embed(good);
        await codeOf(() => embedder.embed(bad));
        await codeOf(() => embedder.embed(broken));
      }
    };
    await round();
    const before = process.memoryUsage().rss;
    await round();
    await round();
    expect((process.memoryUsage().rss - before) / 2 ** 20).to.be.below(24);
  });

  it('keep no kernels for every length of text', async () => {
    const small = await NativeEmbedder.load({ ...(await tinyOptions()), dtype: 'bfloat16' });
    const embed = async (from: number, to: number): Promise<void> => {
      for (let length = from; length < to; length++) {
        const ids = Int32Array.from({ length }, (_, index) => index % 300);
        await small.embed([{ ids, images: [] }]);
      }
    };
    await embed(1, 80);
    const before = process.memoryUsage().rss;
    await embed(80, 480);
    // 600 MiB where oneDNN keeps what it likes.
    expect((process.memoryUsage().rss - before) / 2 ** 20).to.be.below(60);
    await small.dispose();
  });
});
