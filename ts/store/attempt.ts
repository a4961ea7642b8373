/** Writing one attempt at an episode: shots and steps as they happen, then the commit that makes it count. */
import { createHash, randomUUID } from 'node:crypto';
import { type FileHandle, mkdir, open, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type Masker, maskedJson } from './masking.js';
import { createIfAbsent, writeFault } from './publish.js';
import { runVersion } from './schemas.js';
import type { AttemptRecord, EpisodeKey, EpisodeRecord, StepRecord } from './types.js';

/** What an episode's end adds to what the attempt knows already. */
export type EpisodeEnd = Pick<
  EpisodeRecord,
  'outcome' | 'reward' | 'rawReward' | 'answer' | 'finalObservation' | 'costs'
>;

/** A picture of a step, encoded. */
export interface Image {
  bytes: Uint8Array;
  format: 'png' | 'webp' | 'jpeg';
}

/** Where an attempt is written. A folder here; an object store keeps the same promises. */
export interface AttemptWriter {
  readonly id: string;
  /** Stores a screenshot and returns its path relative to the attempt. It is there once the next step is. */
  shot(name: string, image: Image): string;
  /** Resolves when the step and the shots before it can be read by others. */
  step(record: StepRecord): Promise<void>;
  /**
   * Ends the attempt.
   * @returns the record, and whether it counts: false where another attempt was committed first
   */
  commit(end: EpisodeEnd): Promise<{ record: EpisodeRecord; counts: boolean }>;
  /** Leaves the attempt as it is, uncommitted. Does nothing after a commit. */
  abandon(): Promise<void>;
}

/** Where the run keeps an attempt's commit, and what it does about a new one. */
export interface CommitTarget {
  path: string;
  committed(record: EpisodeRecord): Promise<void>;
}

export class FolderAttempt implements AttemptWriter {
  readonly id: string;
  readonly #folder: string;
  readonly #attempt: AttemptRecord;
  readonly #target: CommitTarget;
  readonly #mask: Masker;
  readonly #steps: FileHandle;
  readonly #hash = createHash('sha256');
  readonly #started = performance.now();
  #count = 0;
  #shots: Promise<void>[] = [];
  #closed = false;

  private constructor(
    id: string,
    folder: string,
    attempt: AttemptRecord,
    target: CommitTarget,
    mask: Masker,
    steps: FileHandle,
  ) {
    this.id = id;
    this.#folder = folder;
    this.#attempt = attempt;
    this.#target = target;
    this.#mask = mask;
    this.#steps = steps;
  }

  /** @throws BOQ_FILE_WRITE */
  static async begin(
    attempts: string,
    key: EpisodeKey,
    start: { instruction: string; startUrl: string },
    target: CommitTarget,
    mask: Masker,
  ): Promise<FolderAttempt> {
    const id = randomUUID();
    const folder = join(attempts, id);
    const attempt: AttemptRecord = {
      version: runVersion,
      key,
      ...start,
      startedAt: new Date().toISOString(),
    };
    // A folder that has its name is whole: a kill in between leaves one that nobody lists.
    const unfinished = join(attempts, `.${id}.tmp`);
    try {
      await mkdir(join(unfinished, 'shots'), { recursive: true });
      await writeFile(join(unfinished, 'attempt.json'), maskedJson(attempt, mask));
      await rename(unfinished, folder);
      const steps = await open(join(folder, 'steps.jsonl'), 'ax');
      return new FolderAttempt(id, folder, attempt, target, mask, steps);
    } catch (error) {
      throw writeFault(folder, error);
    }
  }

  shot(name: string, image: Image): string {
    const path = `shots/${name}.${image.format}`;
    const write = writeFile(join(this.#folder, path), image.bytes);
    // Reported by the step that follows; until then a failed write must not count as unhandled.
    write.catch(() => undefined);
    this.#shots.push(write);
    return path;
  }

  async step(record: StepRecord): Promise<void> {
    const line = `${maskedJson(record, this.#mask)}\n`;
    try {
      await this.#shotsWritten();
      await this.#steps.appendFile(line);
    } catch (error) {
      throw writeFault(this.#folder, error);
    }
    this.#hash.update(line);
    this.#count++;
  }

  async commit(end: EpisodeEnd): Promise<{ record: EpisodeRecord; counts: boolean }> {
    const record: EpisodeRecord = {
      version: runVersion,
      key: this.#attempt.key,
      attempt: this.id,
      instruction: this.#attempt.instruction,
      startUrl: this.#attempt.startUrl,
      outcome: end.outcome,
      reward: end.reward,
      rawReward: end.rawReward,
      answer: end.answer,
      steps: this.#count,
      finalObservation: end.finalObservation,
      ...(end.costs ? { costs: end.costs } : {}),
      startedAt: this.#attempt.startedAt,
      durationMs: Math.round(performance.now() - this.#started),
      stepsSha256: this.#hash.digest('hex'),
    };
    try {
      await this.#shotsWritten();
      await this.#steps.datasync();
      await this.abandon();
    } catch (error) {
      throw writeFault(this.#folder, error);
    }
    const counts = await createIfAbsent(this.#target.path, `${maskedJson(record, this.#mask, 1)}\n`);
    if (counts) await this.#target.committed(record);
    return { record, counts };
  }

  async abandon(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    await this.#steps.close();
  }

  async #shotsWritten(): Promise<void> {
    await Promise.all(this.#shots.splice(0));
  }
}
