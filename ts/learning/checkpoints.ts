/**
 * From what a user calls a checkpoint to its folder: a path, or a Hugging Face id that lies in the standard cache,
 * which Python programs share. Nothing is fetched here.
 */
import { readdir, readFile, stat } from 'node:fs/promises';
import { homedir } from 'node:os';
import { basename, join, resolve } from 'node:path';
import { BoqError } from '../core/errors.js';

/** The folder in which Hugging Face libraries keep their repositories, by the variables they all honour. */
export function hubCacheFolder(env: NodeJS.ProcessEnv = process.env): string {
  if (env.HF_HUB_CACHE) return env.HF_HUB_CACHE;
  const home = env.HF_HOME || join(env.XDG_CACHE_HOME || join(homedir(), '.cache'), 'huggingface');
  return join(home, 'hub');
}

/**
 * @param name a folder, or a hub id such as 'Qwen/Qwen2.5-VL-3B-Instruct'.
 * @throws BoqError BOQ_FILE_NOT_FOUND saying how to get it.
 */
export async function resolveCheckpoint(name: string, env: NodeJS.ProcessEnv = process.env): Promise<string> {
  const folder = resolve(name);
  if (await isFile(join(folder, 'config.json'))) return folder;
  if (await isFolder(folder)) {
    throw new BoqError('BOQ_FILE_NOT_FOUND', `a checkpoint folder holds config.json, but ${folder} does not`);
  }
  if (!/^[\w.-]+\/[\w.-]+$/.test(name)) {
    throw new BoqError(
      'BOQ_FILE_NOT_FOUND',
      `no checkpoint folder ${folder}; give a folder or a Hugging Face id`,
    );
  }
  const repository = join(hubCacheFolder(env), `models--${name.replace('/', '--')}`);
  const revision = await readFile(join(repository, 'refs', 'main'), 'utf8').catch(() => null);
  const snapshots = await readdir(join(repository, 'snapshots')).catch(() => []);
  const candidates = revision === null ? snapshots : [revision.trim()];
  for (const snapshot of candidates) {
    const path = join(repository, 'snapshots', snapshot);
    if (await isFile(join(path, 'config.json'))) return path;
  }
  throw new BoqError(
    'BOQ_FILE_NOT_FOUND',
    `${name} is neither a folder nor in the Hugging Face cache (${hubCacheFolder(env)}); ` +
      `fetch it with: node scripts/pull.js ${name}`,
  );
}

/** What a checkpoint is called in records: the id of a snapshot in the Hugging Face cache, else the folder's name. */
export function checkpointName(folder: string): string {
  const repository = /models--([^/]+)--([^/]+)\/snapshots\/[^/]+\/?$/.exec(folder);
  return repository ? `${repository[1]}/${repository[2]}` : basename(folder);
}

async function isFile(path: string): Promise<boolean> {
  return stat(path).then(
    (found) => found.isFile(),
    () => false,
  );
}

async function isFolder(path: string): Promise<boolean> {
  return stat(path).then(
    (found) => found.isDirectory(),
    () => false,
  );
}
