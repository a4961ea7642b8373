/** Reading whole files of run and model folders, checked just far enough to name what is wrong. */
import { readFile, stat } from 'node:fs/promises';
import { BoqError } from '../core/errors.js';
import type { FolderRun } from '../store/run.js';
import type { EpisodeRecord, Json } from '../store/types.js';

export type Facts = { [key: string]: Json };

export async function exists(path: string): Promise<boolean> {
  return stat(path).then(
    () => true,
    () => false,
  );
}

/** Every committed episode of a run, in the order of their names. */
export async function readEpisodes(run: FolderRun): Promise<EpisodeRecord[]> {
  const records: EpisodeRecord[] = [];
  for await (const record of run.records()) records.push(record);
  return records;
}

export async function readJson(path: string): Promise<Facts> {
  return parse(await readFile(path, 'utf8'), path);
}

/** JSON Lines; a torn last line, which an interrupted writer leaves, is not an entry yet. Missing file: no lines. */
export async function readLines<T>(path: string): Promise<T[]> {
  if (!(await exists(path))) return [];
  const lines = (await readFile(path, 'utf8')).split('\n').slice(0, -1);
  return lines.map((line, index) => parse(line, `${path}:${index + 1}`) as T);
}

function parse(text: string, where: string): Facts {
  try {
    return JSON.parse(text) as Facts;
  } catch (cause) {
    throw new BoqError(
      'BOQ_RUN_INVALID',
      `Expected JSON in ${where}; it is damaged. Delete the file if it is a commit, and run its stage again.`,
      { cause },
    );
  }
}
