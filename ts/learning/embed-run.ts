/**
 * The embed stage: a recorded run becomes rows of vectors and an index of its transitions, in
 * runs/<run>/embeddings/<fingerprint>. Contents that occur more than once are embedded once; batches run across
 * steps and episodes while later ones are being read, tokenised and decoded. A kill at any point loses seconds: the
 * next call goes on where the rows end. The manifest is written last, so a folder that has one is complete.
 */
import { mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { BoqError } from '../core/errors.js';
import { acquireLock } from '../core/lock.js';
import { writeSafetensors } from '../core/safetensors.js';
import type { EpisodeRecord, StepRecord } from '../store/types.js';
import { type EmbedRequest, type EmbedResult, requestKey } from './embedder.js';
import { contentKey } from './key-table.js';
import { type EmbedderProfile, hashFile } from './profile.js';
import { type RowFormat, RowStream } from './row-stream.js';
import { actionPrompt, type PastStep, type Piece, statePrompt, taskPrompt } from './templates.js';
import { type StepRows, TransitionIndex } from './transitions.js';

/** What the stage needs of an embedder. */
export interface RunEmbedder {
  readonly width: number;
  readonly profile: EmbedderProfile;
  readonly fingerprint: string;
  embed(requests: readonly EmbedRequest[], signal?: AbortSignal): Promise<EmbedResult>;
}

/** What the stage needs of a run: its committed episodes in a fixed order, and their contents. */
export interface RunSource {
  /** The run's folder. */
  readonly folder: string;
  episodes(): Promise<EpisodeRecord[]>;
  steps(episode: EpisodeRecord): Promise<StepRecord[]>;
  /** The bytes of an image that an observation of the episode names. */
  screenshot(episode: EpisodeRecord, name: string): Promise<Uint8Array>;
}

/** How a run is embedded. */
export interface EmbedRunOptions {
  /** Element type of the stored rows. */
  storage?: 'float32' | 'bfloat16';
  rowsPerShard?: number;
  /** Sequences in one native call. */
  batchSize?: number;
  /** Work between two flushes is what a kill can lose. */
  flushMs?: number;
  signal?: AbortSignal;
  onProgress?: (progress: EmbedProgress) => void;
}

/** How far an embedding is. */
export interface EmbedProgress {
  /** Steps read, of all. */
  steps: number;
  totalSteps: number;
  /** Rows embedded by this call. */
  embedded: number;
  /** Rows taken from the content cache. */
  cached: number;
  /** Contents met again, which cost nothing. */
  reused: number;
  embeddedPerSecond: number;
  secondsLeft: number;
}

/** What an embedding leaves. */
export interface EmbedRunResult {
  folder: string;
  manifest: EmbeddingManifest;
  /** False where the folder was complete already. */
  changed: boolean;
  embedded: number;
  cached: number;
  reused: number;
  seconds: number;
}

/** manifest.json of an embedding folder; docs/data-formats.md describes the fields. */
export interface EmbeddingManifest {
  version: 1;
  fingerprint: string;
  profile: EmbedderProfile;
  /** Digest of the episodes that were embedded: another one means that the run has grown. */
  source: string;
  width: number;
  dtype: 'float32' | 'bfloat16';
  rowsPerShard: number;
  streams: Record<StreamName, { rows: number; shards: string[] }>;
  index: string;
  transitions: number;
  candidates: number;
  episodes: number;
  taskNames: string[];
  successRate: number;
  sha256: Record<string, string>;
}

const streamNames = ['state', 'action', 'task'] as const;
type StreamName = (typeof streamNames)[number];

/** Bytes of decoded pixels in one batch; keeps memory bounded for large screenshots. */
const maxBatchPixelBytes = 96 * 1024 * 1024;
/** Batches prepared or being embedded at once: the device never waits, and memory stays bounded. */
const batchesInFlight = 3;

/**
 * Embeds one run, or returns at once where that is done.
 *
 * @throws BoqError BOQ_DATA_EMPTY, BOQ_RUN_INVALID, BOQ_BUSY, BOQ_ABORTED, BOQ_FILE_WRITE and the embedder's codes
 */
export async function embedRun(
  run: RunSource,
  embedder: RunEmbedder,
  options: EmbedRunOptions = {},
): Promise<EmbedRunResult> {
  const started = performance.now();
  const folder = join(run.folder, 'embeddings', embedder.fingerprint);
  const format: RowFormat = {
    width: embedder.width,
    dtype: options.storage ?? 'float32',
    rowsPerShard: options.rowsPerShard ?? 65_536,
  };
  const episodes = await run.episodes();
  if (episodes.length === 0) {
    throw new BoqError(
      'BOQ_DATA_EMPTY',
      `${run.folder} has no finished episode to embed; collect some first`,
    );
  }
  const source = digestOf(episodes);
  await mkdir(folder, { recursive: true });
  const release = await acquireLock(join(folder, 'lock'), `embedding ${run.folder}`);
  try {
    const found = await readManifest(folder);
    if (found?.source === source && found.dtype === format.dtype) {
      return { folder, manifest: found, changed: false, embedded: 0, cached: 0, reused: 0, seconds: 0 };
    }
    await prepareFolder(folder, format);
    const stage = new EmbedStage(folder, format, run, embedder, options);
    const streams = await stage.embed(episodes);
    const manifest = await stage.writeIndex(streams, source);
    const seconds = (performance.now() - started) / 1000;
    const { embedded, cached, reused } = stage;
    return { folder, manifest, changed: true, embedded, cached, reused, seconds };
  } finally {
    await release();
  }
}

/** @returns null where the folder has no manifest, so is not complete. */
export async function readManifest(folder: string): Promise<EmbeddingManifest | null> {
  const path = join(folder, 'manifest.json');
  const text = await readFile(path, 'utf8').catch(() => null);
  if (text === null) return null;
  try {
    return JSON.parse(text) as EmbeddingManifest;
  } catch (cause) {
    throw new BoqError('BOQ_FILE_CORRUPT', `${path} must hold JSON; delete it and embed the run again`, {
      cause,
    });
  }
}

function digestOf(episodes: readonly EpisodeRecord[]): string {
  const lines = episodes.map(({ key, attempt, stepsSha256 }) => JSON.stringify([key, attempt, stepsSha256]));
  return Buffer.from(contentKey(...lines)).toString('hex');
}

/** From here on the folder is incomplete. Rows of another storage format cannot be continued. */
async function prepareFolder(folder: string, format: RowFormat): Promise<void> {
  await rm(join(folder, 'manifest.json'), { force: true });
  const path = join(folder, 'format.json');
  const wanted = JSON.stringify(format);
  const found = await readFile(path, 'utf8').catch(() => null);
  if (found === wanted) return;
  if (found !== null) {
    for (const name of streamNames) await RowStream.discard(folder, name);
  }
  await writeFile(path, wanted);
}

interface Batch {
  requests: EmbedRequest[];
  targets: RowStream[];
}

class EmbedStage {
  readonly #folder: string;
  readonly #format: RowFormat;
  readonly #run: RunSource;
  readonly #embedder: RunEmbedder;
  readonly #options: EmbedRunOptions;
  readonly #index = new TransitionIndex();
  readonly #lines: string[] = [];
  readonly #started = performance.now();
  #batch: Batch = { requests: [], targets: [] };
  #inFlight: Promise<void>[] = [];
  /** Batches write in their order, whatever the order in which they were prepared. */
  #lastWrite: Promise<void> = Promise.resolve();
  #lastFlush = performance.now();
  #lastReport = 0;
  /** Of the largest screenshot so far, decoded. */
  #imageBytes = 0;
  #steps = 0;
  #totalSteps = 0;
  embedded = 0;
  cached = 0;
  reused = 0;

  constructor(
    folder: string,
    format: RowFormat,
    run: RunSource,
    embedder: RunEmbedder,
    options: EmbedRunOptions,
  ) {
    this.#folder = folder;
    this.#format = format;
    this.#run = run;
    this.#embedder = embedder;
    this.#options = options;
  }

  async embed(episodes: readonly EpisodeRecord[]): Promise<Record<StreamName, RowStream>> {
    const streams = {
      state: await RowStream.open(this.#folder, 'state', this.#format),
      action: await RowStream.open(this.#folder, 'action', this.#format),
      task: await RowStream.open(this.#folder, 'task', this.#format),
    };
    this.#totalSteps = episodes.reduce((sum, episode) => sum + episode.steps, 0);
    try {
      for (const episode of episodes) {
        await this.#embedEpisode(episode, streams);
      }
      await this.#dispatch();
      await Promise.all(this.#inFlight);
      await this.#lastWrite;
      this.#report(true);
    } catch (error) {
      // What is under way must end before the files are closed; its own failure is this one or follows from it.
      await Promise.allSettled([...this.#inFlight, this.#lastWrite]);
      for (const stream of Object.values(streams)) await stream.close();
      throw error;
    }
    return streams;
  }

  async #embedEpisode(episode: EpisodeRecord, streams: Record<StreamName, RowStream>): Promise<void> {
    const all = await this.#run.steps(episode);
    this.#steps += all.length;
    // A step whose candidates were all malformed executed nothing: it is no transition.
    const steps = all.filter((step) => step.candidates[step.selection.index] !== undefined);
    if (steps.length === 0) return;
    const { instruction } = episode;
    const images = await Promise.all(
      steps.map(({ observation }) => this.#run.screenshot(episode, observation.screenshot)),
    );
    const task = await this.#row(streams.task, taskPrompt(instruction));
    const history: PastStep[] = [];
    const rows: StepRows[] = [];
    for (const [index, step] of steps.entries()) {
      const { candidates, selection, result } = step;
      const screenshot = images[index] as Uint8Array;
      const state = await this.#row(streams.state, statePrompt({ instruction, history }), screenshot);
      const candidateRows: number[] = [];
      for (const candidate of candidates) {
        candidateRows.push(
          await this.#row(streams.action, actionPrompt(candidate, this.#embedder.profile.actionView)),
        );
      }
      rows.push({
        state,
        candidates: candidateRows,
        chosen: selection.index,
        explored: selection.evidence?.explored === true,
      });
      const chosen = candidates[selection.index];
      if (chosen !== undefined) {
        history.push({ action: chosen.action, thought: chosen.thought, note: chosen.note, result });
      }
    }
    const { finalObservation } = episode;
    const afterLimit =
      finalObservation === null
        ? -1
        : await this.#row(
            streams.state,
            statePrompt({ instruction, history }),
            await this.#run.screenshot(episode, finalObservation.screenshot),
          );
    this.#index.add(episode, task, rows, afterLimit);
    const { key, outcome, reward } = episode;
    this.#lines.push(JSON.stringify({ key, outcome, reward, steps: rows.length }));
    this.#report(false);
  }

  /** The row of a content; new contents join the next batch. */
  async #row(stream: RowStream, prompt: readonly Piece[], screenshot?: Uint8Array): Promise<number> {
    const request = screenshot === undefined ? { prompt } : { prompt, images: [screenshot] };
    const { row, isNew } = stream.assign(requestKey(request));
    if (!isNew) {
      this.reused++;
      return row;
    }
    this.#batch.requests.push(request);
    this.#batch.targets.push(stream);
    const images = this.#batch.requests.filter((request) => request.images !== undefined).length;
    if (
      this.#batch.requests.length >= (this.#options.batchSize ?? 128) ||
      images * this.#imageBytes >= maxBatchPixelBytes
    ) {
      await this.#dispatch();
    }
    return row;
  }

  /** Sends the batch on its way, and waits only where too many are under way. */
  async #dispatch(): Promise<void> {
    if (this.#options.signal?.aborted)
      throw new BoqError('BOQ_ABORTED', 'embedding was stopped; it can be resumed');
    const batch = this.#batch;
    if (batch.requests.length === 0) return;
    this.#batch = { requests: [], targets: [] };
    while (this.#inFlight.length >= batchesInFlight) await this.#inFlight[0];
    const before = this.#lastWrite;
    const done = this.#embedBatch(batch, before).finally(() => {
      this.#inFlight = this.#inFlight.filter((other) => other !== done);
    });
    // A failure is met again by whoever waits for the batch; until then it is not an unhandled rejection.
    done.catch(() => undefined);
    this.#lastWrite = done;
    this.#inFlight.push(done);
  }

  async #embedBatch(batch: Batch, before: Promise<void>): Promise<void> {
    const { vectors, cached, largestImage } = await this.#embedder.embed(
      batch.requests,
      this.#options.signal,
    );
    this.#imageBytes = Math.max(this.#imageBytes, largestImage);
    await before;
    await this.#write(batch.targets, vectors);
    this.embedded += batch.requests.length - cached;
    this.cached += cached;
    if (performance.now() - this.#lastFlush >= (this.#options.flushMs ?? 2000)) {
      this.#lastFlush = performance.now();
      for (const stream of new Set(batch.targets)) await stream.flush();
    }
    this.#report(false);
  }

  /** Vectors come in the order of requests, which within each stream is the order of rows. */
  async #write(targets: readonly RowStream[], vectors: Float32Array): Promise<void> {
    const { width } = this.#format;
    for (const stream of new Set(targets)) {
      const mine = targets.flatMap((target, index) => (target === stream ? [index] : []));
      const rows = new Float32Array(mine.length * width);
      mine.forEach((index, at) => {
        rows.set(vectors.subarray(index * width, (index + 1) * width), at * width);
      });
      await stream.append(rows);
    }
  }

  #report(isLast: boolean): void {
    const now = performance.now();
    if (this.#options.onProgress === undefined || (!isLast && now - this.#lastReport < 100)) return;
    this.#lastReport = now;
    const seconds = (now - this.#started) / 1000;
    const stepsLeft = this.#totalSteps - this.#steps;
    this.#options.onProgress({
      steps: this.#steps,
      totalSteps: this.#totalSteps,
      embedded: this.embedded,
      cached: this.cached,
      reused: this.reused,
      embeddedPerSecond: this.embedded / seconds,
      secondsLeft: this.#steps === 0 ? Number.POSITIVE_INFINITY : (seconds / this.#steps) * stepsLeft,
    });
  }

  async writeIndex(streams: Record<StreamName, RowStream>, source: string): Promise<EmbeddingManifest> {
    const folder = this.#folder;
    const counts = this.#index.counts;
    if (counts.transitions === 0) {
      for (const stream of Object.values(streams)) await stream.close();
      throw new BoqError(
        'BOQ_DATA_EMPTY',
        `${this.#run.folder} has episodes but no executed step to learn from`,
      );
    }
    const finished = {
      state: await streams.state.finish(),
      action: await streams.action.finish(),
      task: await streams.task.finish(),
    };
    await writeSafetensors(join(folder, 'index.safetensors'), this.#index.tensors(), { format: 'pt' });
    await writeFile(join(folder, 'episodes.jsonl'), `${this.#lines.join('\n')}\n`);
    const files = [
      'index.safetensors',
      'episodes.jsonl',
      ...Object.values(finished).flatMap(({ shards }) => shards),
    ];
    const sha256: Record<string, string> = {};
    for (const file of files) sha256[file] = await hashFile(join(folder, file));
    const manifest: EmbeddingManifest = {
      version: 1,
      fingerprint: this.#embedder.fingerprint,
      profile: this.#embedder.profile,
      source,
      ...this.#format,
      streams: finished,
      index: 'index.safetensors',
      transitions: counts.transitions,
      candidates: counts.candidates,
      episodes: counts.episodes,
      taskNames: this.#index.taskNames,
      successRate: counts.successes / counts.episodes,
      sha256,
    };
    const temporary = join(folder, 'manifest.json.part');
    await writeFile(temporary, `${JSON.stringify(manifest, null, 2)}\n`, { flush: true });
    await rename(temporary, join(folder, 'manifest.json'));
    return manifest;
  }
}
