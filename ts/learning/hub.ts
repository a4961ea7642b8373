/**
 * Fetching a checkpoint from the Hugging Face hub into the standard cache, which Python programs share:
 * blobs/<hash>, snapshots/<commit>/<file> -> the blob, refs/<revision> with the commit. Another architecture is
 * refused before gigabytes are fetched.
 */

import { mkdir, readFile, rename, stat, statfs, symlink, writeFile } from 'node:fs/promises';
import { homedir } from 'node:os';
import { dirname, join, relative } from 'node:path';
import { HubApiError, listFiles, modelInfo } from '@huggingface/hub';
import pLimit from 'p-limit';
import { BoqError } from '../core/errors.js';
import { acquireLock } from '../core/lock.js';
import { hubCacheFolder, resolveCheckpoint } from './checkpoints.js';
import { HubClient, type HubSettings, hubFailure, refusal } from './hub-requests.js';
import { type RemoteFile, transfer } from './hub-transfer.js';

/** What to fetch, from where, and how patiently. */
export interface PullOptions {
  /** Branch, tag or commit. */
  revision?: string;
  env?: NodeJS.ProcessEnv;
  signal?: AbortSignal;
  /** What is about to be fetched; called before the first large file. */
  onPlan?: (plan: PullPlan) => void;
  onProgress?: (progress: { bytes: number; totalBytes: number }) => void;
  /** For tests. */
  settings?: Partial<HubSettings>;
}

/** What will be fetched, told before the first large file. */
export interface PullPlan {
  id: string;
  commit: string;
  /** As the repository states it, e.g. 'apache-2.0', 'other'; null where it states none. */
  license: string | null;
  files: number;
  totalBytes: number;
  /** Bytes in the cache already. */
  presentBytes: number;
}

/** Where the checkpoint lies. */
export interface PullResult extends PullPlan {
  /** The snapshot's folder: a checkpoint in the Hugging Face layout. */
  folder: string;
}

/** Files of a checkpoint that this package reads, or that explain it. */
const wanted = /^(?:[^/]+\.(?:json|jinja|safetensors)|merges\.txt|README\.md|LICENSE[^/]*|NOTICE[^/]*)$/;
const required = ['config.json', 'tokenizer.json', 'tokenizer_config.json'];
const concurrentFiles = 3;

/**
 * Brings a checkpoint into the cache, or finds it there. Whatever was fetched before stays, so the same call resumes.
 *
 * @param id e.g. 'Qwen/Qwen2.5-VL-3B-Instruct'.
 * @throws BoqError BOQ_HUB, BOQ_CONFIG_INVALID for another architecture, BOQ_FILE_CORRUPT, BOQ_FILE_WRITE, BOQ_BUSY,
 * BOQ_ABORTED; BOQ_FILE_NOT_FOUND offline
 */
export async function pullCheckpoint(id: string, options: PullOptions = {}): Promise<PullResult> {
  const env = options.env ?? process.env;
  if (!/^[\w.-]+\/[\w.-]+$/.test(id)) {
    throw new BoqError('BOQ_USAGE', `a hub id has the form organisation/name, not "${id}"`);
  }
  const revision = options.revision ?? 'main';
  if (isTrue(env.HF_HUB_OFFLINE) || isTrue(env.TRANSFORMERS_OFFLINE)) return offline(id, env);
  const client = new HubClient({ ...(await settingsOf(env)), ...options.settings }, options.signal);
  const { commit, license, files } = await describe(client, id, revision);
  const repository = join(hubCacheFolder(env), `models--${id.replace('/', '--')}`);
  await mkdir(join(repository, 'blobs'), { recursive: true });
  const release = await acquireLock(join(repository, '.boq-lock'), `fetching ${id}`);
  try {
    return await fetchAll(client, { id, commit, license, files, repository, revision }, options);
  } finally {
    await release();
  }
}

interface Repository {
  id: string;
  commit: string;
  license: string | null;
  files: RemoteFile[];
  repository: string;
  revision: string;
}

async function fetchAll(client: HubClient, found: Repository, options: PullOptions): Promise<PullResult> {
  const { id, commit, license, files, repository, revision } = found;
  const blob = (file: RemoteFile): string => join(repository, 'blobs', file.etag);
  const folder = join(repository, 'snapshots', commit);
  // Files of equal content share a blob.
  const blobs = [...new Map(files.map((file) => [file.etag, file])).values()];
  const present = new Map(
    await Promise.all(blobs.map(async (file) => [file.etag, await presentBytes(blob(file), file)] as const)),
  );
  const sum = (values: Iterable<number>): number => [...values].reduce((total, value) => total + value, 0);
  const totalBytes = sum(blobs.map(({ size }) => size));
  const fetchOne = async (file: RemoteFile): Promise<void> => {
    const url = `${client.settings.endpoint}/${id}/resolve/${commit}/${encodeURIComponent(file.path)}`;
    await transfer(client, url, file, blob(file), (bytes) => {
      present.set(file.etag, bytes);
      options.onProgress?.({ bytes: sum(present.values()), totalBytes });
    });
    for (const { path, etag } of files)
      if (etag === file.etag) await linkSnapshot(join(folder, path), blob(file));
  };
  await mkdir(folder, { recursive: true });
  const config = files.find(({ path }) => path === 'config.json') as RemoteFile;
  await fetchOne(config);
  await requireArchitecture(id, join(folder, 'config.json'));
  const plan: PullPlan = {
    id,
    commit,
    license,
    files: files.length,
    totalBytes,
    presentBytes: sum(present.values()),
  };
  options.onPlan?.(plan);
  await requireSpace(repository, totalBytes - plan.presentBytes);
  const limit = pLimit(concurrentFiles);
  const outcomes = await Promise.allSettled(blobs.map((file) => limit(() => fetchOne(file))));
  for (const outcome of outcomes) if (outcome.status === 'rejected') throw outcome.reason;
  if (revision !== commit) {
    const ref = join(repository, 'refs', revision);
    await mkdir(dirname(ref), { recursive: true });
    await writeFile(`${ref}.part`, commit);
    await rename(`${ref}.part`, ref);
  }
  return { ...plan, folder };
}

/** What the hub says about a model: its commit, its licence, and the files to fetch with their hashes. */
async function describe(
  client: HubClient,
  id: string,
  revision: string,
): Promise<Pick<Repository, 'commit' | 'license' | 'files'>> {
  const common = { hubUrl: client.settings.endpoint, fetch: client.fetch };
  try {
    const info = await modelInfo({ name: id, revision, additionalFields: ['sha', 'cardData'], ...common });
    const card = info.cardData as { license?: string | string[]; license_name?: string } | undefined;
    const license = card?.license_name ?? card?.license ?? null;
    const files: RemoteFile[] = [];
    const repo = { type: 'model', name: id } as const;
    for await (const entry of listFiles({ repo, revision: info.sha, ...common })) {
      if (entry.type !== 'file' || !wanted.test(entry.path)) continue;
      const { path, size, lfs } = entry;
      const etag = lfs?.oid ?? entry.oid ?? '';
      if (!/^[0-9a-f]{40,64}$/.test(etag)) throw hubFailure(id, `the hub lists no usable hash for ${path}`);
      files.push({ path, size, etag, kind: lfs === undefined ? 'git' : 'sha256' });
    }
    const missing = required.filter((name) => !files.some(({ path }) => path === name));
    if (!files.some(({ path }) => path.endsWith('.safetensors'))) missing.push('*.safetensors');
    if (missing.length > 0)
      throw hubFailure(id, `a checkpoint needs ${missing.join(', ')}, which the repository lacks`);
    return { commit: info.sha, license: Array.isArray(license) ? license.join(', ') : license, files };
  } catch (error) {
    if (error instanceof HubApiError) throw refusal(id, error.statusCode);
    if (error instanceof BoqError) throw error;
    const { message, cause } = error as Error & { cause?: Error };
    const reason = cause?.message ?? message;
    throw hubFailure(
      id,
      `the hub at ${client.settings.endpoint} could not be reached or understood: ${reason}`,
      error,
    );
  }
}

async function requireArchitecture(id: string, path: string): Promise<void> {
  let type: unknown;
  try {
    type = (JSON.parse(await readFile(path, 'utf8')) as { model_type?: unknown }).model_type;
  } catch (cause) {
    throw new BoqError('BOQ_CONFIG_INVALID', `config.json of ${id} must hold a JSON object`, { cause });
  }
  if (type === 'qwen2_5_vl') return;
  throw new BoqError(
    'BOQ_CONFIG_INVALID',
    `a checkpoint of the qwen2_5_vl architecture is needed, but ${id} is ${JSON.stringify(type)}; nothing large was fetched`,
  );
}

async function requireSpace(folder: string, bytes: number): Promise<void> {
  const { bavail, bsize } = await statfs(folder);
  const free = bavail * bsize;
  if (free >= bytes) return;
  const gigabytes = (value: number): string => `${(value / 1e9).toFixed(1)} GB`;
  throw new BoqError(
    'BOQ_FILE_WRITE',
    `${gigabytes(bytes)} are needed below ${folder}, but ${gigabytes(free)} are free; set HF_HUB_CACHE to another disk`,
  );
}

/** As Python's client makes them: relative links, so that the cache can be moved. */
async function linkSnapshot(path: string, blob: string): Promise<void> {
  await mkdir(dirname(path), { recursive: true });
  try {
    await symlink(relative(dirname(path), blob), path);
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code !== 'EEXIST') throw cause;
  }
}

async function presentBytes(blob: string, file: RemoteFile): Promise<number> {
  for (const path of [blob, `${blob}.incomplete`]) {
    const size = await stat(path).then(
      (found) => found.size,
      () => 0,
    );
    if (size > 0) return Math.min(size, file.size);
  }
  return 0;
}

async function offline(id: string, env: NodeJS.ProcessEnv): Promise<PullResult> {
  const folder = await resolveCheckpoint(id, env);
  const commit = folder.split('/').at(-1) ?? '';
  return { id, commit, license: null, files: 0, totalBytes: 0, presentBytes: 0, folder };
}

async function settingsOf(env: NodeJS.ProcessEnv): Promise<HubSettings> {
  const home = env.HF_HOME || join(env.XDG_CACHE_HOME || join(homedir(), '.cache'), 'huggingface');
  const stored = await readFile(env.HF_TOKEN_PATH || join(home, 'token'), 'utf8').catch(() => '');
  return {
    endpoint: (env.HF_ENDPOINT || 'https://huggingface.co').replace(/\/+$/, ''),
    token: (env.HF_TOKEN || stored).trim() || undefined,
    attempts: 6,
    retryMs: 1000,
    stallMs: 30_000,
  };
}

function isTrue(value: string | undefined): boolean {
  return ['1', 'true', 'yes', 'on'].includes((value ?? '').toLowerCase());
}
