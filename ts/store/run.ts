/**
 * A run folder: run.json first, then attempts, then commits. An episode exists when its commit file exists; a key
 * counts once, whoever finishes it; what is left to do is the plan minus the commits. Any number of processes may
 * write to one run at the same time.
 */
import { createHash, randomUUID } from 'node:crypto';
import { appendFile, mkdir, readdir, readFile, rename, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { BoqError } from '../core/errors.js';
import { type AttemptWriter, FolderAttempt } from './attempt.js';
import { keyName } from './keys.js';
import { createMasker, type Masker, maskedJson, secretsOfEnvironment } from './masking.js';
import { createIfAbsent, writeFault } from './publish.js';
import { invalidRun, parseRecord, runVersion } from './schemas.js';
import type {
  AttemptRecord,
  EpisodeKey,
  EpisodeRecord,
  IndexEntry,
  Json,
  RunRecord,
  StepRecord,
} from './types.js';

/** A committed episode with its steps. */
export interface StoredEpisode {
  record: EpisodeRecord;
  steps: StepRecord[];
}

/** An attempt as it lies on disk, finished or not. */
export interface StoredAttempt {
  attempt: AttemptRecord;
  steps: StepRecord[];
  /** True where the last line was cut off while it was written; it is left out of `steps`. */
  torn: boolean;
}

/** What the stages read and write: a folder today; an object store can keep the same promises. */
export interface RunStore {
  readonly record: RunRecord;
  begin(key: EpisodeKey, start: { instruction: string; startUrl: string }): Promise<AttemptWriter>;
  /** Names ({@link keyName}) of all commits. */
  committed(): Promise<Set<string>>;
  find(key: EpisodeKey): Promise<EpisodeRecord | null>;
  records(): AsyncIterable<EpisodeRecord>;
  episodes(): AsyncIterable<StoredEpisode>;
  steps(record: EpisodeRecord): Promise<StepRecord[]>;
}

/** What a run is, when it begins. */
export interface CreateRun {
  kind: RunRecord['kind'];
  /** Every resolved option that shapes the episodes. */
  config: { [key: string]: Json };
  seed: number;
  versions?: { [name: string]: string };
  gitCommit?: string | null;
}

/** How a run is written. */
export interface StoreOptions {
  /** Values that must not be written, beside those of environment variables with telling names. */
  secrets?: readonly string[];
}

/** Options that never change what a run records: it may be continued with others. */
export const volatileOptions: ReadonlySet<string> = new Set([
  'workers',
  'device',
  'headed',
  'retries',
  'modelPaths',
]);

/** A run on disk: episodes with their steps and pictures, committed whole. */
export class FolderRun implements RunStore {
  /** Absolute path. */
  readonly folder: string;
  readonly record: RunRecord;
  readonly #mask: Masker;

  private constructor(folder: string, record: RunRecord, options: StoreOptions) {
    this.folder = folder;
    this.record = record;
    this.#mask = masker(options);
  }

  /**
   * Opens an existing run to read or to continue it.
   * @throws BOQ_FILE_NOT_FOUND, BOQ_RUN_INVALID
   */
  static async open(path: string, options: StoreOptions = {}): Promise<FolderRun> {
    const folder = resolve(path);
    const file = join(folder, 'run.json');
    const json = await readIfThere(file);
    if (json === null) {
      throw new BoqError(
        'BOQ_FILE_NOT_FOUND',
        `Expected a run folder, but ${file} does not exist: give the --out folder of collect.js or evaluate.js.`,
      );
    }
    return new FolderRun(folder, parseRecord('run', json, { file }), options);
  }

  /**
   * Starts a run, or continues the one in the folder when it was started with the same configuration.
   * @throws BOQ_RUN_EXISTS naming the first option that differs, BOQ_RUN_INVALID, BOQ_FILE_WRITE
   */
  static async create(path: string, create: CreateRun, options: StoreOptions = {}): Promise<FolderRun> {
    const folder = resolve(path);
    const record: RunRecord = {
      version: runVersion,
      kind: create.kind,
      id: randomUUID(),
      createdAt: new Date().toISOString(),
      config: create.config,
      seed: create.seed,
      versions: create.versions ?? {},
      gitCommit: create.gitCommit ?? null,
    };
    const file = join(folder, 'run.json');
    try {
      await mkdir(join(folder, 'attempts'), { recursive: true });
      await mkdir(join(folder, 'episodes'), { recursive: true });
    } catch (error) {
      throw writeFault(folder, error);
    }
    const created = await createIfAbsent(file, `${maskedJson(record, masker(options), 2)}\n`);
    const run = await FolderRun.open(folder, options);
    if (!created) requireSameRun(run, create, options);
    return run;
  }

  begin(key: EpisodeKey, start: { instruction: string; startUrl: string }): Promise<AttemptWriter> {
    const target = {
      path: this.#commitPath(keyName(key)),
      committed: (record: EpisodeRecord) => this.#addToIndex(record),
    };
    return FolderAttempt.begin(join(this.folder, 'attempts'), key, start, target, this.#mask);
  }

  async committed(): Promise<Set<string>> {
    return new Set(await this.#commitNames());
  }

  async find(key: EpisodeKey): Promise<EpisodeRecord | null> {
    const file = this.#commitPath(keyName(key));
    const json = await readIfThere(file);
    return json === null ? null : parseRecord('episode', json, { file });
  }

  /** Committed episodes in the order of their names, which does not depend on who finished first. */
  async *records(): AsyncGenerator<EpisodeRecord> {
    for (const name of (await this.#commitNames()).sort()) {
      const file = this.#commitPath(name);
      yield parseRecord('episode', await readText(file), { file });
    }
  }

  /** As {@link records}, each with its steps. */
  async *episodes(): AsyncGenerator<StoredEpisode> {
    for await (const record of this.records()) yield { record, steps: await this.steps(record) };
  }

  /**
   * Steps of a committed episode.
   * @throws BOQ_RUN_INVALID where the file is not the one that was committed
   */
  async steps(record: EpisodeRecord): Promise<StepRecord[]> {
    const file = this.#attemptPath(record.attempt, 'steps.jsonl');
    const text = await readText(file);
    const steps = text
      .split('\n')
      .slice(0, -1)
      .map((line, index) => parseRecord('step', line, { file, line: index + 1 }));
    if (sha256(text) !== record.stepsSha256) {
      throw invalidRun(
        { file },
        'its content is not what was committed: delete the commit file to run the episode again',
      );
    }
    return steps;
  }

  /**
   * An attempt up to its last whole step, committed or not.
   * @throws BOQ_RUN_INVALID
   */
  async attempt(id: string): Promise<StoredAttempt> {
    const file = this.#attemptPath(id, 'attempt.json');
    const attempt = parseRecord('attempt', await readText(file), { file });
    const stepsFile = this.#attemptPath(id, 'steps.jsonl');
    const lines = ((await readIfThere(stepsFile)) ?? '').split('\n');
    const torn = lines.pop() !== '';
    const steps = lines.map((line, index) => parseRecord('step', line, { file: stepsFile, line: index + 1 }));
    return { attempt, steps, torn };
  }

  /** Ids of all attempts, whether they count or not. */
  async attempts(): Promise<string[]> {
    const names = await readdir(join(this.folder, 'attempts'));
    return names.filter((name) => !name.startsWith('.')).sort();
  }

  /**
   * Absolute path of a screenshot that a step or a final observation names.
   * @throws BOQ_RUN_INVALID where the name would lead out of the attempt's folder
   */
  shotPath(attempt: string, screenshot: string): string {
    if (!/^[\w.-]+(?:\/[\w.-]+)*$/.test(screenshot) || screenshot.split('/').includes('..')) {
      throw invalidRun(
        { file: this.#attemptPath(attempt, 'steps.jsonl') },
        `"${screenshot}" is no path below the attempt`,
      );
    }
    return this.#attemptPath(attempt, screenshot);
  }

  /** Writes index.jsonl anew from the commits. */
  async rebuildIndex(): Promise<void> {
    const lines: string[] = [];
    for await (const record of this.records()) lines.push(indexLine(record));
    const path = join(this.folder, 'index.jsonl');
    const temporary = `${path}.${randomUUID()}.tmp`;
    try {
      await writeFile(temporary, lines.join(''));
      await rename(temporary, path);
    } catch (error) {
      throw writeFault(path, error);
    }
  }

  #commitPath(name: string): string {
    return join(this.folder, 'episodes', `${name}.json`);
  }

  #attemptPath(id: string, name: string): string {
    if (!/^[\w-]+$/.test(id)) throw invalidRun({ file: this.folder }, `"${id}" is no attempt's name`);
    return join(this.folder, 'attempts', id, name);
  }

  async #commitNames(): Promise<string[]> {
    const names = await readdir(join(this.folder, 'episodes'));
    // Temporary files of a process that was killed begin with a dot.
    return names
      .filter((name) => name.endsWith('.json') && !name.startsWith('.'))
      .map((name) => name.slice(0, -5));
  }

  async #addToIndex(record: EpisodeRecord): Promise<void> {
    const path = join(this.folder, 'index.jsonl');
    try {
      await appendFile(path, indexLine(record));
    } catch (error) {
      throw writeFault(path, error);
    }
  }
}

/** Opens an existing run. See {@link FolderRun.open}. */
export function openRun(folder: string, options?: StoreOptions): Promise<FolderRun> {
  return FolderRun.open(folder, options);
}

function masker({ secrets = [] }: StoreOptions): Masker {
  return createMasker([...secrets, ...secretsOfEnvironment()]);
}

function requireSameRun(run: FolderRun, create: CreateRun, options: StoreOptions): void {
  const mask = masker(options);
  const wanted = { kind: create.kind, seed: create.seed, ...create.config };
  const found: Record<string, Json> = { kind: run.record.kind, seed: run.record.seed, ...run.record.config };
  for (const name of new Set([...Object.keys(wanted), ...Object.keys(found)])) {
    if (volatileOptions.has(name)) continue;
    const now = maskedJson((wanted as Record<string, Json>)[name] ?? null, mask);
    const before = JSON.stringify(found[name] ?? null);
    if (now === before) continue;
    throw new BoqError(
      'BOQ_RUN_EXISTS',
      `Expected to continue the run in ${run.folder}, but it was started with ${name} = ${before} and now ${name} ` +
        `= ${now}: use the same options, or another --out.`,
      { details: { folder: run.folder, option: name, before, now } },
    );
  }
}

function indexLine({ key, attempt, outcome, reward, steps }: EpisodeRecord): string {
  const entry: IndexEntry = { key, attempt, outcome, reward, steps };
  return `${JSON.stringify(entry)}\n`;
}

async function readIfThere(file: string): Promise<string | null> {
  try {
    return await readFile(file, 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null;
    throw invalidRun({ file }, `could not be read, ${(error as Error).message}`, error);
  }
}

async function readText(file: string): Promise<string> {
  const text = await readIfThere(file);
  if (text === null) throw invalidRun({ file }, 'expected this file, it is missing');
  return text;
}

function sha256(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}
