/**
 * Contents on their way to their rows: batched across steps, episodes and streams, a few batches under way at once so
 * that the device never waits, and written in the order in which they were asked for.
 */
import { BoqError } from '../core/errors.js';
import type { EmbedRequest, EmbedResult } from './embedder.js';
import type { RowStream } from './row-stream.js';

/** Bytes of decoded pixels in one batch; keeps memory bounded for large screenshots. */
const maxBatchPixelBytes = 96 * 1024 * 1024;
/** Batches prepared or being embedded at once; more would only take memory. */
const batchesInFlight = 3;

export interface EmbedPipelineOptions {
  /** Embeds one batch: as many vectors as requests, in their order. */
  embed: (requests: readonly EmbedRequest[]) => Promise<EmbedResult>;
  /** Requests in one batch, at most. */
  batchSize: number;
  /** Milliseconds between two flushes: work in between is what a kill can lose. */
  flushMs: number;
  signal?: AbortSignal;
  /** Called after each batch that was written. */
  onBatch: () => void;
}

interface Batch {
  requests: EmbedRequest[];
  targets: RowStream[];
}

/** Takes requests one by one and appends their vectors to the streams; the streams stay the caller's to close. */
export class EmbedPipeline {
  readonly #options: EmbedPipelineOptions;
  #batch: Batch = { requests: [], targets: [] };
  #inFlight: Promise<void>[] = [];
  /** Batches write in their order, whatever the order in which they were prepared. */
  #lastWrite: Promise<void> = Promise.resolve();
  #lastFlush = performance.now();
  /** Of the largest screenshot so far, decoded. */
  #imageBytes = 0;
  #embedded = 0;
  #cached = 0;

  constructor(options: EmbedPipelineOptions) {
    this.#options = options;
  }

  /** Rows written whose vectors were computed. */
  get embedded(): number {
    return this.#embedded;
  }

  /** Rows written whose vectors came from the content cache. */
  get cached(): number {
    return this.#cached;
  }

  /**
   * Takes the content of the next new row of `target`; waits only where too many batches are under way.
   * @throws BoqError BOQ_ABORTED; what embedding and writing of earlier batches throw
   */
  async add(request: EmbedRequest, target: RowStream): Promise<void> {
    const { requests, targets } = this.#batch;
    requests.push(request);
    targets.push(target);
    const images = requests.filter((one) => one.images !== undefined).length;
    if (requests.length >= this.#options.batchSize || images * this.#imageBytes >= maxBatchPixelBytes)
      await this.#dispatch();
  }

  /** Resolves when everything that was added is written. @throws as {@link add} */
  async drain(): Promise<void> {
    await this.#dispatch();
    await Promise.all(this.#inFlight);
    await this.#lastWrite;
  }

  /** After a fault: waits for what is still under way. Its own failure is that fault or follows from it. */
  async settle(): Promise<void> {
    await Promise.allSettled([...this.#inFlight, this.#lastWrite]);
  }

  async #dispatch(): Promise<void> {
    if (this.#options.signal?.aborted)
      throw new BoqError('BOQ_ABORTED', 'embedding was stopped; it can be resumed');
    const batch = this.#batch;
    if (batch.requests.length === 0) return;
    this.#batch = { requests: [], targets: [] };
    while (this.#inFlight.length >= batchesInFlight) await this.#inFlight[0];
    const before = this.#lastWrite;
    const done = this.#embed(batch, before).finally(() => {
      this.#inFlight = this.#inFlight.filter((other) => other !== done);
    });
    // A failure is met again by whoever waits for the batch; until then it is not an unhandled rejection.
    done.catch(() => undefined);
    this.#lastWrite = done;
    this.#inFlight.push(done);
  }

  async #embed({ requests, targets }: Batch, before: Promise<void>): Promise<void> {
    const { vectors, cached, largestImage } = await this.#options.embed(requests);
    this.#imageBytes = Math.max(this.#imageBytes, largestImage);
    await before;
    await append(targets, vectors);
    this.#embedded += requests.length - cached;
    this.#cached += cached;
    if (performance.now() - this.#lastFlush >= this.#options.flushMs) {
      this.#lastFlush = performance.now();
      for (const stream of new Set(targets)) await stream.flush();
    }
    this.#options.onBatch();
  }
}

/**
 * Vectors come in the order of requests, which within each stream is the order of rows.
 * @param vectors [targets.length, width]
 */
async function append(targets: readonly RowStream[], vectors: Float32Array): Promise<void> {
  const width = vectors.length / targets.length;
  for (const stream of new Set(targets)) {
    const mine = targets.flatMap((target, index) => (target === stream ? [index] : []));
    const rows = new Float32Array(mine.length * width);
    mine.forEach((index, at) => {
      rows.set(vectors.subarray(index * width, (index + 1) * width), at * width);
    });
    await stream.append(rows);
  }
}
