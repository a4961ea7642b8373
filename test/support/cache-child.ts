/** Writes vectors into a content cache until somebody kills it, saying after each batch how far it is. */
import { ContentCache } from '../../ts/learning/content-cache.js';
import { contentKey } from '../../ts/learning/key-table.js';

const [folder = '', from = '0'] = process.argv.slice(2);
const cache = await ContentCache.open(folder);
for (let batch = Number(from); ; batch++) {
  const entries = Array.from({ length: 10 }, (_, i) => ({
    key: contentKey(`${10 * batch + i}`),
    vector: Float32Array.of(10 * batch + i, 1, 2, 3),
    tokens: i,
  }));
  await cache.put('fingerprint', entries);
  await new Promise<void>((resolve) => {
    process.stdout.write(`${batch}\n`, () => resolve());
  });
}
