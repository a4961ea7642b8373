/** Model folders made ready to score: the Q-function behind the embedder it was trained on. */
import { readdir, readFile, stat } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import type { Critic } from '../agent/types.js';
import { BoqError } from '../core/errors.js';
import type { ContentCache } from '../learning/content-cache.js';
import { ConstantCritic, QCritic } from '../learning/critic.js';
import { Embedder, type EmbedderOptions } from '../learning/embedder.js';
import { readManifest } from '../learning/embedding-manifest.js';
import type { ModelConfig } from '../learning/model-card.js';
import { hashFile } from '../learning/profile.js';
import { Scorer } from '../native/scorer.js';

/** A trained model, ready to score. */
export interface OpenModel {
  /** As given; the name of a control that needs no folder. */
  path: string;
  /** Where a chosen margin is kept; null where there is no folder. */
  folder: string | null;
  /** Generation in the keys of the episodes it chooses: equal for equal weights, wherever they lie. */
  id: string;
  critic: Critic;
  /** Tasks that training saw, as far as its data is still there. */
  trainingTasks: string[];
  /** Folders of data that training named and that are gone. */
  missingData: string[];
}

/** The checkpoint that a set of models shares. */
export interface ModelSetOptions {
  /** Checkpoint folder of the embedder that the models were trained on. */
  embedder: string;
  device?: string;
  /** Embeddings of earlier commands; stays the caller's to close. */
  cache?: ContentCache;
  /** What the embedder may remember to do less work; by default all of it, in 512 MiB. */
  reuse?: EmbedderOptions['reuse'];
}

/** Models that share one checkpoint, loaded once for each profile. Release with `dispose()` or `await using`. */
export class ModelSet implements AsyncDisposable {
  readonly #options: ModelSetOptions;
  readonly #scorers: Scorer[] = [];
  /** By the settings that they were loaded with. */
  readonly #embedders = new Map<string, Embedder>();

  constructor(options: ModelSetOptions) {
    this.#options = options;
  }

  /**
   * @param path model folder
   * @throws BOQ_FILE_NOT_FOUND, BOQ_FILE_CORRUPT, BOQ_FINGERPRINT_MISMATCH and those of loading
   */
  async open(path: string): Promise<OpenModel> {
    const config = await readModelConfig(path);
    const embedder = await this.#embedderFor(config);
    const scorer = await Scorer.load({ path, device: this.#options.device ?? 'auto' });
    this.#scorers.push(scorer);
    const hash = await hashFile(join(path, 'model.safetensors'));
    return {
      path,
      folder: path,
      id: hash.slice(0, 12),
      critic: new QCritic(embedder, scorer, path, config.calibration ?? null),
      ...(await tasksOf(config)),
    };
  }

  /** The checkpoint with the settings that the model's profile names. */
  async #embedderFor({ profile }: ModelConfig): Promise<Embedder> {
    const settings = profile as Pick<
      Required<EmbedderOptions>,
      'pooling' | 'l2' | 'hiddenLayer' | 'minPixels' | 'maxPixels' | 'dtype' | 'actionView'
    >;
    const { pooling, l2, hiddenLayer, minPixels, maxPixels, dtype, actionView } = settings;
    const chosen = { pooling, l2, hiddenLayer, minPixels, maxPixels, dtype, actionView };
    const key = JSON.stringify(chosen);
    const known = this.#embedders.get(key);
    if (known) return known;
    const embedder = await Embedder.load({
      path: this.#options.embedder,
      device: this.#options.device ?? 'auto',
      ...(this.#options.cache === undefined ? {} : { cache: this.#options.cache }),
      ...(this.#options.reuse === undefined ? {} : { reuse: this.#options.reuse }),
      ...chosen,
    });
    this.#embedders.set(key, embedder);
    return embedder;
  }

  async dispose(): Promise<void> {
    for (const scorer of this.#scorers.splice(0)) await scorer.dispose();
    for (const embedder of this.#embedders.values()) await embedder.dispose();
    this.#embedders.clear();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.dispose();
  }
}

/** The control that gives all candidates one value, so that only the policy's order decides. */
export function constantModel(): OpenModel {
  return {
    path: 'constant',
    folder: null,
    id: 'constant',
    critic: new ConstantCritic(),
    trainingTasks: [],
    missingData: [],
  };
}

/** The model folder below `root` that was finished last, or null. */
export async function newestModel(root: string): Promise<string | null> {
  let newest: { path: string; at: number } | null = null;
  for (const name of await readdir(root).catch(() => [])) {
    const path = join(root, name);
    const at = await stat(join(path, 'model.safetensors')).then(
      ({ mtimeMs }) => mtimeMs,
      () => null,
    );
    // Checkpoints of embedders lie in such folders too; only a Q-function says of what kind it is.
    if (at === null || (newest && at <= newest.at) || !(await isQFunction(path))) continue;
    newest = { path, at };
  }
  return newest?.path ?? null;
}

/**
 * What a finished model was trained on, all its data together.
 * @param model model folder
 * @returns null where there is none, or training has not reached its last step
 */
export async function trainedOn(model: string): Promise<{ episodes: number; transitions: number } | null> {
  try {
    const config = JSON.parse(await readFile(join(model, 'config.json'), 'utf8')) as ModelConfig;
    if (!(config.steps >= Number(config.config['steps']))) return null;
    const sum = (pick: (one: ModelConfig['data'][number]) => number): number =>
      config.data.reduce((all, one) => all + pick(one), 0);
    return { episodes: sum((one) => one.episodes), transitions: sum((one) => one.transitions) };
  } catch {
    return null;
  }
}

async function isQFunction(path: string): Promise<boolean> {
  return readModelConfig(path).then(
    () => true,
    () => false,
  );
}

async function readModelConfig(path: string): Promise<ModelConfig> {
  const file = resolve(path, 'config.json');
  let text: string;
  try {
    text = await readFile(file, 'utf8');
  } catch (cause) {
    throw new BoqError(
      'BOQ_FILE_NOT_FOUND',
      `Expected a trained model, but ${file} does not exist: give the --out folder of train.js.`,
      { cause },
    );
  }
  try {
    const config = JSON.parse(text) as ModelConfig;
    if (config.kind === 'iql') return config;
  } catch {
    // Told below.
  }
  throw new BoqError(
    'BOQ_FILE_CORRUPT',
    `Expected ${file} to describe a Q-function of kind "iql": train it again.`,
  );
}

async function tasksOf({ data }: ModelConfig): Promise<Pick<OpenModel, 'trainingTasks' | 'missingData'>> {
  const tasks = new Set<string>();
  const missingData: string[] = [];
  for (const { path } of data) {
    const manifest = await readManifest(path);
    if (manifest === null) missingData.push(path);
    for (const name of manifest?.taskNames ?? []) tasks.add(name);
  }
  return { trainingTasks: [...tasks].sort(), missingData };
}
