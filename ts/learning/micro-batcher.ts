/**
 * Joins embedding requests that come in together, from the candidates of one step and from all episodes that run at
 * once, into one native call. A request waits a moment for company while the device is idle, and otherwise until the
 * call before it has ended. Equal contents are embedded once.
 */

import { LruMap } from '../core/lru.js';
import { type EmbedRequest, type EmbedResult, requestKey } from './embedder.js';

export interface BatchEmbedder {
  readonly width: number;
  embed(requests: readonly EmbedRequest[]): Promise<EmbedResult>;
}

/** One request's answer. */
export interface BatchedVector {
  /** [width]; shared between callers, so not to be changed. */
  vector: Float32Array;
  /** Tokens that were computed for whoever asked first; 0 for those after, and where the disk's cache answered. */
  computedTokens: number;
}

interface Waiting {
  request: EmbedRequest;
  resolve: (answer: BatchedVector) => void;
  reject: (reason: unknown) => void;
}

const idleWaitMs = 1;
const largestBatch = 256;
const keptVectors = 4096;

export class MicroBatcher {
  readonly #embedder: BatchEmbedder;
  readonly #vectors = new LruMap<string, Promise<BatchedVector>>(keptVectors);
  #waiting: Waiting[] = [];
  #running = false;
  #scheduled = false;
  /** Requests asked for, answered from memory, and native calls made. */
  readonly counts = { requests: 0, hits: 0, calls: 0 };

  constructor(embedder: BatchEmbedder) {
    this.#embedder = embedder;
  }

  /** The vector of one request. */
  embed(request: EmbedRequest): Promise<BatchedVector> {
    this.counts.requests++;
    const key = Buffer.from(requestKey(request)).toString('latin1');
    const known = this.#vectors.get(key);
    if (known !== undefined) {
      this.counts.hits++;
      return known.then(({ vector }) => ({ vector, computedTokens: 0 }));
    }
    const answer = this.#enqueue(request);
    this.#vectors.set(key, answer);
    // A failure is not remembered; and whoever asked may have lost interest before it came.
    answer.catch(() => this.#vectors.delete(key));
    return answer;
  }

  #enqueue(request: EmbedRequest): Promise<BatchedVector> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ request, resolve, reject });
      this.#schedule();
    });
  }

  #schedule(): void {
    if (this.#running || this.#scheduled) return;
    this.#scheduled = true;
    setTimeout(() => {
      this.#scheduled = false;
      void this.#run();
    }, idleWaitMs);
  }

  /** Never rejects: every failure goes to the requests of its call. */
  async #run(): Promise<void> {
    this.#running = true;
    while (this.#waiting.length > 0) {
      const batch = this.#waiting.splice(0, largestBatch);
      this.counts.calls++;
      try {
        const { vectors, computedTokens } = await this.#embedder.embed(batch.map(({ request }) => request));
        const { width } = this.#embedder;
        batch.forEach(({ resolve }, row) => {
          resolve({
            vector: vectors.slice(row * width, (row + 1) * width),
            computedTokens: computedTokens[row] ?? 0,
          });
        });
      } catch (error) {
        for (const { reject } of batch) reject(error);
      }
    }
    this.#running = false;
  }
}
