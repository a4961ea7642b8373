/** A text and a screenshot become vectors. usage: node examples/embed.js IMAGE [CHECKPOINT] */
import { readFile } from 'node:fs/promises';
import { Embedder, image, renderChat } from '@boq/native';

const [picture, path = 'models/tiny'] = process.argv.slice(2);
const embedder = await Embedder.load({ path });
const { vectors, tokens } = await embedder.embed([
  { prompt: renderChat([{ role: 'user', content: ['A shop that sells tea'] }]) },
  {
    prompt: renderChat([{ role: 'user', content: ['The screen: ', image] }]),
    images: [await readFile(picture)],
  },
]);
console.log(`${tokens.length} vectors of ${embedder.width}, from ${tokens.join(' and ')} tokens`);
console.log(`first values: ${vectors[0].toFixed(4)} and ${vectors[embedder.width].toFixed(4)}`);
await embedder.dispose();
