/**
 * What an embedding is made of, and its fingerprint. Vectors of two fingerprints never mix: they come from different
 * functions even where they have the same width.
 */
import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { mkdir, readdir, readFile, realpath, rename, stat, writeFile } from 'node:fs/promises';
import { homedir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { BoqError } from '../core/errors.js';
import type { ActionView } from './templates.js';

/** Everything that a vector depends on. Vectors of different profiles must not meet. */
export interface EmbedderProfile {
  /** sha256 over the checkpoint's configuration, tokenizer and weights. */
  model: string;
  template: string;
  actionView: ActionView;
  pooling: string;
  l2: boolean;
  hiddenLayer: number;
  minPixels: number;
  maxPixels: number;
  /** The reference whose pixels are matched bit by bit: the torchvision-backend processor. */
  imageProcessor: 'torchvision';
  /** Arithmetic of the forward pass. */
  dtype: 'float32' | 'bfloat16';
}

/** 16 hexadecimal digits over the profile; the name of embedding folders. */
export function fingerprintOf(profile: EmbedderProfile): string {
  return createHash('sha256').update(canonicalJson(profile)).digest('hex').slice(0, 16);
}

/** JSON with sorted keys, so that equal values give equal text. */
function canonicalJson(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonicalJson).join(',')}]`;
  if (typeof value === 'object' && value !== null) {
    const entries = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1));
    return `{${entries.map(([key, item]) => `${JSON.stringify(key)}:${canonicalJson(item)}`).join(',')}}`;
  }
  return JSON.stringify(value);
}

/**
 * @throws BoqError BOQ_FINGERPRINT_MISMATCH naming both, unless they are equal.
 */
export function requireSameFingerprint(
  a: { what: string; fingerprint: string },
  b: { what: string; fingerprint: string },
): void {
  if (a.fingerprint === b.fingerprint) return;
  throw new BoqError(
    'BOQ_FINGERPRINT_MISMATCH',
    `embeddings must come from one embedder profile, but ${a.what} has fingerprint ${a.fingerprint} and ${b.what} has ` +
      `${b.fingerprint}; use the same checkpoint, template, pooling, pixel limits and dtype, or embed and train again`,
    { details: { a, b } },
  );
}

/** The pixel limits a checkpoint asks for, in either spelling of preprocessor_config.json. */
export async function readPixelLimits(folder: string): Promise<{ minPixels: number; maxPixels: number }> {
  const path = join(folder, 'preprocessor_config.json');
  let file: Record<string, unknown> = {};
  try {
    file = JSON.parse(await readFile(path, 'utf8')) as Record<string, unknown>;
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code !== 'ENOENT') {
      throw new BoqError('BOQ_FILE_CORRUPT', `${path} must hold a JSON object`, { cause });
    }
  }
  const size = (file.size ?? {}) as Record<string, unknown>;
  // Without a file: the defaults of the reference library.
  const minPixels = Number(file.min_pixels ?? size.shortest_edge ?? 3136);
  const maxPixels = Number(file.max_pixels ?? size.longest_edge ?? 1003520);
  if (!(minPixels > 0 && minPixels <= maxPixels)) {
    throw new BoqError(
      'BOQ_CONFIG_INVALID',
      `${path} must give pixel limits with 0 < min <= max, it gives ${minPixels} and ${maxPixels}`,
    );
  }
  return { minPixels, maxPixels };
}

/**
 * sha256 over config.json, tokenizer.json and every safetensors file of a checkpoint. Reading gigabytes takes
 * seconds, so each file's hash is kept in `cacheFile` under its real path, size and time of change.
 */
export async function hashCheckpoint(folder: string, cacheFile = defaultCacheFile()): Promise<string> {
  const names = await readdir(folder).catch((cause) => {
    throw new BoqError('BOQ_FILE_NOT_FOUND', `a checkpoint folder was expected at ${folder}`, { cause });
  });
  const files = names.filter((name) => name.endsWith('.safetensors')).sort();
  if (files.length === 0) {
    throw new BoqError('BOQ_FILE_NOT_FOUND', `${folder} holds no .safetensors file, so it is no checkpoint`);
  }
  const known = await readCache(cacheFile);
  const total = createHash('sha256');
  let changed = false;
  for (const name of ['config.json', 'tokenizer.json', ...files]) {
    const path = await realpath(join(folder, name)).catch((cause) => {
      throw new BoqError('BOQ_FILE_NOT_FOUND', `a checkpoint folder holds ${name}, but ${folder} does not`, {
        cause,
      });
    });
    const { size, mtimeNs } = await stat(path, { bigint: true });
    const key = `${path} ${size} ${mtimeNs}`;
    let digest = known[key];
    if (digest === undefined) {
      digest = await hashFile(path);
      known[key] = digest;
      changed = true;
    }
    total.update(`${name} ${digest}\n`);
  }
  if (changed) await writeCache(cacheFile, known);
  return total.digest('hex');
}

export async function hashFile(path: string): Promise<string> {
  const hash = createHash('sha256');
  for await (const chunk of createReadStream(path, { highWaterMark: 1 << 20 })) hash.update(chunk as Buffer);
  return hash.digest('hex');
}

function defaultCacheFile(): string {
  const cache = process.env.XDG_CACHE_HOME || join(homedir(), '.cache');
  return join(cache, 'boq', 'file-hashes.json');
}

async function readCache(path: string): Promise<Record<string, string>> {
  try {
    return JSON.parse(await readFile(path, 'utf8')) as Record<string, string>;
  } catch {
    return {};
  }
}

/** A lost race or a read-only home costs a second hashing, nothing else. */
async function writeCache(path: string, entries: Record<string, string>): Promise<void> {
  try {
    await mkdir(dirname(path), { recursive: true });
    const temporary = join(dirname(path), `.${basename(path)}-${process.pid}`);
    await writeFile(temporary, JSON.stringify(entries));
    await rename(temporary, path);
  } catch {
    // Only a cache.
  }
}
