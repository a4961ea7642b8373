import { Worker } from 'node:worker_threads';
import { expect } from 'chai';
import { loadTiny, packageRoot, runChild, textItems, tinyOptions } from '../support/native.js';

/** A worker that loads the addon for itself, embeds `count` texts, and says so before each step. */
async function embeddingWorker(count: number): Promise<Worker> {
  const options = JSON.stringify(await tinyOptions());
  const code = `
    const { parentPort } = require('node:worker_threads');
    const addon = require('node-gyp-build')(${JSON.stringify(packageRoot)});
    const items = Array.from({ length: ${count} }, () => ({ ids: new Int32Array(512).fill(400), images: [] }));
    addon.loadEmbedder(${JSON.stringify(options)}).then(async (embedder) => {
      const running = embedder.embed(items);
      parentPort.postMessage('started');
      const { tokens } = await running;
      parentPort.postMessage(tokens.length);
    });`;
  return new Worker(code, { eval: true });
}

function nextMessage(worker: Worker): Promise<unknown> {
  return new Promise((resolve, reject) => {
    worker.once('message', resolve);
    worker.once('error', reject);
  });
}

describe('life cycle', () => {
  const endings: [string, number | null, string | null][] = [
    ['after-load', 0, null],
    ['after-embed', 0, null],
    ['after-dispose', 0, null],
    ['awaiting-nothing', 0, null],
    ['exit-in-job', 7, null],
    ['exit-in-load', 8, null],
    ['throw-in-job', 1, null],
    ['terminate-in-job', null, 'SIGTERM'],
  ];
  for (const [ending, code, signal] of endings) {
    it(`a process ends by itself: ${ending}`, async () => {
      const end = await runChild('life-cycle.ts', ending);
      expect({ code: end.code, signal: end.signal }, end.stderr).to.deep.equal({ code, signal });
    });
  }

  for (const order of [
    ['sharp', 'torch'],
    ['torch', 'sharp'],
  ]) {
    it(`${order.join(', then ')}: both work in one process`, async () => {
      const end = await runChild('load-order.ts', ...order);
      expect(end.code, end.stderr).to.equal(0);
      const [first, second] = order.map((name) => (name === 'sharp' ? 320 * 240 * 3 : 4 * 128));
      expect(JSON.parse(end.stdout)).to.deep.equal([first, second, first, second, first, second]);
    });
  }

  it('two workers and the main thread use the addon side by side', async () => {
    const embedder = await loadTiny();
    const workers = await Promise.all([embeddingWorker(5), embeddingWorker(6)]);
    const answers = workers.map(async (worker) => [await nextMessage(worker), await nextMessage(worker)]);
    const own = embedder.embed(textItems(7));
    expect(await Promise.all(answers)).to.deep.equal([
      ['started', 5],
      ['started', 6],
    ]);
    expect((await own).tokens.length).to.equal(7);
    await Promise.all(workers.map((worker) => worker.terminate()));
    expect((await embedder.embed(textItems(3))).tokens.length).to.equal(3);
    await embedder.dispose();
  });

  it('workers that are terminated in the middle of a job harm nobody', async () => {
    const embedder = await loadTiny();
    for (let round = 0; round < 3; round += 1) {
      const workers = await Promise.all([embeddingWorker(20_000), embeddingWorker(20_000)]);
      await Promise.race(workers.map(nextMessage));
      await Promise.all(workers.map((worker) => worker.terminate()));
    }
    expect((await embedder.embed(textItems(3))).tokens.length).to.equal(3);
    await embedder.dispose();
  });
});
