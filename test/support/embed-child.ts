/** Embeds a run and says so after every native call, until somebody kills it. Arguments: folder, episodes, batch. */
import { embedRun } from '../../ts/learning/embed-run.js';
import { FakeEmbedder, FakeRun } from './fake-run.js';

const [folder = '', episodes = '0', batch = '1'] = process.argv.slice(2);
const embedder = new FakeEmbedder();
embedder.onCall = (calls) =>
  new Promise((resolve) => {
    process.stdout.write(`${calls}\n`, () => resolve());
  });
await embedRun(new FakeRun(folder).fill(Number(episodes)), embedder, {
  batchSize: Number(batch),
  rowsPerShard: 64,
  flushMs: 0,
});
