/** Embedding folders as training data: finding them, checking that they belong together, saying what is in them. */
import { readdir, readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { BoqError } from '../core/errors.js';
import { readSafetensors } from '../core/safetensors.js';
import { type EmbeddingManifest, readManifest } from './embedding-manifest.js';
import type { Labels } from './labels.js';
import { requireSameFingerprint } from './profile.js';

/** Embedding folders of one profile, and what they hold. */
export interface TrainingData {
  /** Embedding folders, all of one fingerprint. */
  folders: string[];
  fingerprint: string;
  width: number;
  episodes: number;
  transitions: number;
  candidates: number;
  successRate: number;
  /** Episodes and successes of every task, over all folders. */
  tasks: { name: string; episodes: number; successes: number }[];
}

/**
 * The complete embedding folder behind a path: that folder itself, or a run with exactly one.
 *
 * @throws BoqError BOQ_DATA_EMPTY, BOQ_USAGE
 */
export async function findEmbeddings(path: string): Promise<string> {
  if ((await readManifest(path)) !== null) return path;
  const base = join(path, 'embeddings');
  const complete: string[] = [];
  for (const name of await readdir(base).catch(() => [])) {
    if ((await readManifest(join(base, name))) !== null) complete.push(join(base, name));
  }
  if (complete.length > 1) {
    throw new BoqError(
      'BOQ_USAGE',
      `${path} was embedded by several embedders; name one of the folders: ${complete.join(', ')}`,
    );
  }
  const [only] = complete;
  if (only !== undefined) return only;
  throw new BoqError(
    'BOQ_DATA_EMPTY',
    `${path} has no finished embeddings; make them with: node scripts/embed.js ${path}`,
  );
}

/** The run below `root` whose embeddings were finished last, or null. */
export async function newestEmbeddedRun(root: string): Promise<string | null> {
  let newest: { path: string; at: number } | null = null;
  for (const run of await readdir(root).catch(() => [])) {
    const base = join(root, run, 'embeddings');
    for (const name of await readdir(base).catch(() => [])) {
      const path = join(base, name);
      const at = await stat(join(path, 'manifest.json')).then(
        ({ mtimeMs }) => mtimeMs,
        () => null,
      );
      if (at !== null && (newest === null || at > newest.at)) newest = { path, at };
    }
  }
  return newest?.path ?? null;
}

/**
 * Reads the manifests and outcomes of several runs.
 *
 * @param labels replace the outcomes of the episodes that they name.
 * @throws BoqError BOQ_DATA_EMPTY, BOQ_FINGERPRINT_MISMATCH, BOQ_FILE_CORRUPT
 */
export async function describeData(paths: readonly string[], labels?: Labels): Promise<TrainingData> {
  const folders = await Promise.all(paths.map(findEmbeddings));
  const manifests = await Promise.all(
    folders.map(async (folder) => (await readManifest(folder)) as EmbeddingManifest),
  );
  const [first] = manifests;
  if (first === undefined) throw new BoqError('BOQ_DATA_EMPTY', 'training needs at least one embedded run');
  const tasks = new Map<string, { name: string; episodes: number; successes: number }>();
  for (const [i, manifest] of manifests.entries()) {
    requireSameFingerprint(
      { what: folders[0] as string, fingerprint: first.fingerprint },
      { what: folders[i] as string, fingerprint: manifest.fingerprint },
    );
    const index = await readSafetensors(join(folders[i] as string, manifest.index));
    const task = index.get('episode_task')?.data;
    const recorded = index.get('episode_success')?.data;
    if (task === undefined || recorded === undefined) {
      throw new BoqError(
        'BOQ_FILE_CORRUPT',
        `${folders[i]}/${manifest.index} lacks the outcomes; embed the run again`,
      );
    }
    const success =
      labels === undefined ? recorded : await relabelled(folders[i] as string, recorded, labels);
    new Int32Array(task.buffer).forEach((number, episode) => {
      const name = manifest.taskNames[number] ?? String(number);
      const entry = tasks.get(name) ?? { name, episodes: 0, successes: 0 };
      entry.episodes++;
      entry.successes += success[episode] ?? 0;
      tasks.set(name, entry);
    });
  }
  const sum = (pick: (manifest: EmbeddingManifest) => number): number =>
    manifests.reduce((total, manifest) => total + pick(manifest), 0);
  const episodes = sum((manifest) => manifest.episodes);
  const successes = [...tasks.values()].reduce((total, each) => total + each.successes, 0);
  return {
    folders,
    fingerprint: first.fingerprint,
    width: first.width,
    episodes,
    transitions: sum((manifest) => manifest.transitions),
    candidates: sum((manifest) => manifest.candidates),
    successRate: successes / episodes,
    tasks: [...tasks.values()].sort((a, b) => (a.name < b.name ? -1 : 1)),
  };
}

/** The outcomes of a folder's episodes with those that were judged again. */
async function relabelled(folder: string, recorded: Uint8Array, labels: Labels): Promise<Uint8Array> {
  const lines = (await readFile(join(folder, 'episodes.jsonl'), 'utf8')).split('\n').filter(Boolean);
  return recorded.map((success, episode) => {
    const label = labels.of(JSON.parse(lines[episode] ?? '{}').key ?? {});
    return label === undefined ? success : Number(label);
  });
}
