/**
 * Embeddings by content, on disk: what any process embedded once, with any command, is not embedded again. One LMDB
 * environment for all embedders of a user; many processes read and write it at once, and a kill at any moment leaves
 * it consistent. Losing it costs time, never correctness.
 */

import { mkdir, stat } from 'node:fs/promises';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { open, type RootDatabase } from 'lmdb';
import { BoqError } from '../core/errors.js';

/** A vector and how many tokens it took. */
export interface CachedVector {
  /** [width] float32. */
  vector: Float32Array;
  /** Tokens that the forward pass had. */
  tokens: number;
}

export interface CacheCounts {
  hits: number;
  misses: number;
}

/** Beyond this size the cache is emptied when it is opened. */
const defaultMaxBytes = 16 * 2 ** 30;
const prefixBytes = 4;

/** Where the cache lies unless told otherwise. */
export function defaultCacheFolder(env: NodeJS.ProcessEnv = process.env): string {
  return join(env.XDG_CACHE_HOME || join(homedir(), '.cache'), 'boq', 'embeddings');
}

/** Vectors by content on disk, shared by processes; kill -9 loses at most the last writes. */
export class ContentCache implements AsyncDisposable {
  readonly #database: RootDatabase<Buffer, Buffer>;
  readonly counts: CacheCounts = { hits: 0, misses: 0 };

  private constructor(database: RootDatabase<Buffer, Buffer>) {
    this.#database = database;
  }

  /** @throws BoqError BOQ_FILE_WRITE */
  static async open(folder: string, maxBytes = defaultMaxBytes): Promise<ContentCache> {
    try {
      await mkdir(folder, { recursive: true });
      const database = open<Buffer, Buffer>({ path: folder, encoding: 'binary', keyEncoding: 'binary' });
      const { size } = await stat(join(folder, 'data.mdb'));
      if (size > maxBytes) await database.clearAsync();
      return new ContentCache(database);
    } catch (cause) {
      const { message } = cause as Error;
      throw new BoqError(
        'BOQ_FILE_WRITE',
        `the embedding cache ${folder} cannot be used: ${message}; use --no-cache`,
        {
          cause,
        },
      );
    }
  }

  /** The vector of a content under one embedder profile, or null. A record of another width counts as none. */
  get(fingerprint: string, key: Uint8Array, width: number): CachedVector | null {
    const record = this.#database.get(cacheKey(fingerprint, key));
    if (record === undefined || record.byteLength !== prefixBytes + 4 * width) {
      this.counts.misses++;
      return null;
    }
    this.counts.hits++;
    const vector = new Float32Array(width);
    new Uint8Array(vector.buffer).set(record.subarray(prefixBytes));
    return { vector, tokens: record.readUInt32LE(0) };
  }

  /** Remembers vectors in one transaction; resolves when they are on disk. */
  async put(fingerprint: string, entries: readonly (CachedVector & { key: Uint8Array })[]): Promise<void> {
    await this.#database.batch(() => {
      for (const { key, vector, tokens } of entries) {
        const record = Buffer.alloc(prefixBytes + vector.byteLength);
        record.writeUInt32LE(tokens, 0);
        record.set(new Uint8Array(vector.buffer, vector.byteOffset, vector.byteLength), prefixBytes);
        void this.#database.put(cacheKey(fingerprint, key), record);
      }
    });
  }

  async close(): Promise<void> {
    await this.#database.close();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }
}

function cacheKey(fingerprint: string, key: Uint8Array): Buffer {
  return Buffer.concat([Buffer.from(fingerprint), key]);
}
