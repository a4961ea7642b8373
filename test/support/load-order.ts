/** Uses sharp and libtorch in one process, in the order of the arguments, twice, then both at once. */
import sharp from 'sharp';
import { loadTiny, textItems } from './native.js';

async function useSharp(): Promise<number> {
  const image = sharp({ create: { width: 640, height: 480, channels: 3, background: '#336699' } });
  const pixels = await image.resize(320, 240).raw().toBuffer();
  return pixels.length;
}

async function useTorch(): Promise<number> {
  await using embedder = await loadTiny();
  const { vectors } = await embedder.embed(textItems(4));
  return vectors.length;
}

const users = { sharp: useSharp, torch: useTorch };
const order = process.argv.slice(2) as (keyof typeof users)[];
const results: number[] = [];
for (const name of [...order, ...order]) results.push(await users[name]());
results.push(...(await Promise.all(order.map((name) => users[name]()))));
process.stdout.write(JSON.stringify(results));
