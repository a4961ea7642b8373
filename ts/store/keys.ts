/** Episode keys as file names: readable, safe on every file system, and different for different keys. */
import { createHash } from 'node:crypto';
import type { EpisodeKey } from './types.js';

/** The fields in the one order that counts. */
function fields(key: EpisodeKey): (string | number)[] {
  return [key.benchmark, key.task, key.seed, key.policy, key.selector, key.generation, key.repeat];
}

/** Name of the commit file, without its ending: a readable part for people, and a hash that makes it unique. */
export function keyName(key: EpisodeKey): string {
  const readable = [key.task, key.seed, key.selector, key.repeat]
    .join('_')
    .replace(/[^A-Za-z0-9._=-]+/g, '-')
    .slice(0, 100);
  const hash = createHash('sha256')
    .update(JSON.stringify(fields(key)))
    .digest('hex')
    .slice(0, 16);
  return `${readable}_${hash}`;
}
