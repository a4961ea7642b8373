/**
 * The embed stage: a recorded run becomes rows of vectors and an index of its transitions, in
 * runs/<run>/embeddings/<fingerprint>. Contents that occur more than once are embedded once; batches run across
 * steps and episodes while later ones are being read, tokenised and decoded. A kill at any point loses seconds: the
 * next call goes on where the rows end. The manifest is written last, so a folder that has one is complete.
 */
import { mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { BoqError } from '../core/errors.js';
import { acquireLock } from '../core/lock.js';
import { writeSafetensors } from '../core/safetensors.js';
import type { EpisodeRecord } from '../store/types.js';
import { EmbedPipeline } from './embed-pipeline.js';
import { type EmbedRequest, type EmbedResult, requestKey } from './embedder.js';
import {
  type EmbeddingManifest,
  readManifest,
  type StreamName,
  streamNames,
  writeManifest,
} from './embedding-manifest.js';
import { contentKey } from './key-table.js';
import { type EmbedderProfile, hashFile } from './profile.js';
import { type RowFormat, RowStream } from './row-stream.js';
import type { RunSource } from './run-source.js';
import { actionPrompt, type PastStep, type Piece, statePrompt, taskPrompt } from './templates.js';
import { type StepRows, TransitionIndex } from './transitions.js';

/** What the stage needs of an embedder. */
export interface RunEmbedder {
  readonly width: number;
  readonly profile: EmbedderProfile;
  readonly fingerprint: string;
  embed(requests: readonly EmbedRequest[], signal?: AbortSignal): Promise<EmbedResult>;
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

class EmbedStage {
  readonly #folder: string;
  readonly #format: RowFormat;
  readonly #run: RunSource;
  readonly #embedder: RunEmbedder;
  readonly #pipeline: EmbedPipeline;
  readonly #onProgress: EmbedRunOptions['onProgress'];
  readonly #index = new TransitionIndex();
  readonly #lines: string[] = [];
  readonly #started = performance.now();
  #lastReport = 0;
  #steps = 0;
  #totalSteps = 0;
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
    const { batchSize = 128, flushMs = 2000, signal, onProgress } = options;
    this.#onProgress = onProgress;
    this.#pipeline = new EmbedPipeline({
      ...{ batchSize, flushMs },
      embed: (requests) => embedder.embed(requests, signal),
      ...(signal ? { signal } : {}),
      onBatch: () => this.#report(false),
    });
  }

  get embedded(): number {
    return this.#pipeline.embedded;
  }

  get cached(): number {
    return this.#pipeline.cached;
  }

  /** @returns the streams, open, with a row for every content of the episodes */
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
      await this.#pipeline.drain();
      this.#report(true);
    } catch (error) {
      // What is under way must end before the files are closed.
      await this.#pipeline.settle();
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

  /** The row of a content; new contents are sent on their way. */
  async #row(stream: RowStream, prompt: readonly Piece[], screenshot?: Uint8Array): Promise<number> {
    const request = screenshot === undefined ? { prompt } : { prompt, images: [screenshot] };
    const { row, isNew } = stream.assign(requestKey(request));
    if (isNew) await this.#pipeline.add(request, stream);
    else this.reused++;
    return row;
  }

  #report(isLast: boolean): void {
    const now = performance.now();
    if (this.#onProgress === undefined || (!isLast && now - this.#lastReport < 100)) return;
    this.#lastReport = now;
    const seconds = (now - this.#started) / 1000;
    const stepsLeft = this.#totalSteps - this.#steps;
    this.#onProgress({
      steps: this.#steps,
      totalSteps: this.#totalSteps,
      embedded: this.embedded,
      cached: this.cached,
      reused: this.reused,
      embeddedPerSecond: this.embedded / seconds,
      secondsLeft: this.#steps === 0 ? Number.POSITIVE_INFINITY : (seconds / this.#steps) * stepsLeft,
    });
  }

  /** Ends the streams and completes the folder. @throws BoqError BOQ_DATA_EMPTY where no step was executed */
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
    await writeManifest(folder, manifest);
    return manifest;
  }
}
