/**
 * Labels as training data: an embedding folder beside the one that they come from, with the same rows and one
 * transition for each action tried, whose reward is its label and which ends there. Q is then regressed on the label
 * itself, by any of its losses, and a training on both folders learns from both kinds of data.
 */
import { copyFile, link, mkdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { BoqError } from '../core/errors.js';
import { bytesView, readSafetensors, type Tensor, writeSafetensors } from '../core/safetensors.js';
import { type BackupOptions, type LabelledAction, type LabelStep, labelActions } from './backup.js';
import { type EmbeddingManifest, readManifest, writeManifest } from './embedding-manifest.js';
import { findEmbeddings } from './training-data.js';

export interface LabelSummary {
  /** The folder, for training. */
  folder: string;
  /** Different actions tried, each in its state. */
  actions: number;
  /** States in which several were tried. */
  forks: number;
}

/**
 * Writes the labels of an embedded run; `out` is a folder of its own, e.g. runs/tree/labels-max.
 * @param path run or embedding folder
 * @throws BoqError BOQ_DATA_EMPTY, BOQ_USAGE, BOQ_FILE_CORRUPT
 */
export async function writeLabelFolder(
  path: string,
  out: string,
  options: BackupOptions,
): Promise<LabelSummary> {
  const source = await findEmbeddings(path);
  const manifest = (await readManifest(source)) as EmbeddingManifest;
  const index = await readIndex(join(source, manifest.index));
  const labelled = labelActions(episodesOf(index), options);
  await mkdir(out, { recursive: true });
  for (const { shards } of Object.values(manifest.streams)) {
    for (const shard of shards) await sameFile(join(source, shard), join(out, shard));
  }
  await writeSafetensors(join(out, 'index.safetensors'), tensorsOf(labelled, index), { format: 'pt' });
  const own: EmbeddingManifest = {
    ...manifest,
    source: `${manifest.source} ${JSON.stringify(options)}`,
    index: 'index.safetensors',
    transitions: labelled.length,
    candidates: labelled.length,
    episodes: labelled.length,
    successRate: labelled.filter(({ label }) => label > 0.5).length / labelled.length,
    sha256: {},
  };
  await writeManifest(out, own);
  const states = new Map<string, number>();
  for (const { state, task } of labelled)
    states.set(`${state} ${task}`, (states.get(`${state} ${task}`) ?? 0) + 1);
  const forks = [...states.values()].filter((count) => count > 1).length;
  return { folder: out, actions: labelled.length, forks };
}

interface Index {
  state: BigInt64Array;
  action: BigInt64Array;
  task: BigInt64Array;
  reward: Float32Array;
  done: Uint8Array;
  episode: Int32Array;
  episodeTask: Int32Array;
  episodeSplit: Float32Array;
}

async function readIndex(path: string): Promise<Index> {
  const tensors = await readSafetensors(path);
  const bytes = (name: string): ArrayBuffer => {
    const data = tensors.get(name)?.data;
    if (!data)
      throw new BoqError('BOQ_FILE_CORRUPT', `Expected an array "${name}" in ${path}: embed the run again.`);
    // A copy begins at an address that any element type may begin at.
    return Uint8Array.from(data).buffer;
  };
  return {
    state: new BigInt64Array(bytes('state')),
    action: new BigInt64Array(bytes('action')),
    task: new BigInt64Array(bytes('task')),
    reward: new Float32Array(bytes('reward')),
    done: new Uint8Array(bytes('done')),
    episode: new Int32Array(bytes('episode')),
    episodeTask: new Int32Array(bytes('episode_task')),
    episodeSplit: new Float32Array(bytes('episode_split')),
  };
}

function episodesOf({ state, action, task, reward, done }: Index): LabelStep[][] {
  const episodes: LabelStep[][] = [[]];
  for (let i = 0; i < state.length; i++) {
    const isLast = done[i] === 1;
    episodes.at(-1)!.push({
      ...{ state: Number(state[i]), action: Number(action[i]), task: Number(task[i]) },
      ...{ reward: reward[i]!, isLast },
    });
    if (isLast) episodes.push([]);
  }
  return episodes.slice(0, -1);
}

/** Every labelled action as an episode of one step, on the side of the split that its first visit was on. */
function tensorsOf(labelled: readonly LabelledAction[], index: Index): Tensor[] {
  const episodeOf = new Map<string, number>();
  for (let i = index.state.length - 1; i >= 0; i--)
    episodeOf.set(`${index.state[i]} ${index.action[i]} ${index.task[i]}`, index.episode[i]!);
  const origin = labelled.map(({ state, action, task }) => episodeOf.get(`${state} ${action} ${task}`)!);
  const count = labelled.length;
  const i64 = (name: string, values: number[]): Tensor => ({
    ...{ name, dtype: 'I64', shape: [values.length] },
    data: bytesView(BigInt64Array.from(values, BigInt)),
  });
  const i32 = (name: string, values: number[]): Tensor => ({
    ...{ name, dtype: 'I32', shape: [values.length] },
    data: bytesView(Int32Array.from(values)),
  });
  const f32 = (name: string, values: number[]): Tensor => ({
    ...{ name, dtype: 'F32', shape: [values.length] },
    data: bytesView(Float32Array.from(values)),
  });
  const u8 = (name: string, values: number[]): Tensor => ({
    ...{ name, dtype: 'U8', shape: [values.length] },
    data: bytesView(Uint8Array.from(values)),
  });
  const each = (value: (one: LabelledAction, at: number) => number): number[] => labelled.map(value);
  const zeros = new Array<number>(count).fill(0);
  const ones = new Array<number>(count).fill(1);
  const numbers = each((_, at) => at);
  return [
    i64(
      'state',
      each(({ state }) => state),
    ),
    i64(
      'action',
      each(({ action }) => action),
    ),
    i64(
      'task',
      each(({ task }) => task),
    ),
    i64('next_state', new Array<number>(count).fill(-1)),
    i64('candidate_offset', [...numbers, count]),
    i64(
      'candidate_action',
      each(({ action }) => action),
    ),
    i64('episode_first', numbers),
    i32('episode', numbers),
    i32('step', zeros),
    i32('chosen', zeros),
    i32(
      'episode_task',
      origin.map((episode) => index.episodeTask[episode]!),
    ),
    i32('episode_steps', ones),
    f32(
      'reward',
      each(({ label }) => label),
    ),
    f32(
      'episode_split',
      origin.map((episode) => index.episodeSplit[episode]!),
    ),
    u8('done', ones),
    u8('timeout', zeros),
    u8('explored', zeros),
    u8(
      'episode_success',
      each(({ label }) => Number(label > 0.5)),
    ),
  ];
}

/** The same file under another name; a copy where the two lie on different disks. */
async function sameFile(from: string, to: string): Promise<void> {
  // What an earlier call left may belong to embeddings that were written anew since.
  await rm(to, { force: true });
  await link(from, to).catch(() => copyFile(from, to));
}
