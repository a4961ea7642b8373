/**
 * Randomness as a hash of names: the same run seed, task, episode seed and step give the same draw whatever
 * the number of workers, the order of episodes or the restarts in between.
 */
import { createHash } from 'node:crypto';

/** What a draw depends on: equal keys give equal draws. */
export type RandomKey = readonly (string | number)[];

/** A deterministic source of uniform numbers in [0, 1). Successive draws come from counter-mode SHA-256. */
export interface RandomSource {
  next(): number;
  /** An integer in [0, bound). */
  below(bound: number): number;
}

/** Uniform in [0, 1), from 53 bits of SHA-256 over the key. */
export function hashUniform(key: RandomKey): number {
  const digest = createHash('sha256').update(JSON.stringify(key)).digest();
  return Number(digest.readBigUInt64BE(0) >> 11n) / 2 ** 53;
}

/** Draws that depend on their key alone, not on order or workers. */
export function randomSource(key: RandomKey): RandomSource {
  let counter = 0;
  const next = (): number => hashUniform([...key, counter++]);
  return { next, below: (bound) => Math.floor(next() * bound) };
}
