/** Reading run and model folders for the report: whole files, checked just far enough to name what is wrong. */
import { readdir, readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { BoqError } from '../core/errors.js';
import type { EpisodeRecord, Json, RunRecord, StepRecord } from '../store/types.js';

export type Facts = { [key: string]: Json };

export async function exists(path: string): Promise<boolean> {
  return stat(path).then(
    () => true,
    () => false,
  );
}

export async function readRun(run: string): Promise<RunRecord> {
  return (await readJson(join(run, 'run.json'))) as unknown as RunRecord;
}

/** Every committed episode, by key. A commit that cannot be read is BOQ_RUN_INVALID. */
export async function readEpisodes(run: string): Promise<EpisodeRecord[]> {
  const folder = join(run, 'episodes');
  const names = (await exists(folder)) ? await readdir(folder) : [];
  const commits = names.filter((name) => name.endsWith('.json')).sort();
  const records = await Promise.all(commits.map((name) => readJson(join(folder, name))));
  return records as unknown as EpisodeRecord[];
}

export function attemptPath(run: string, record: EpisodeRecord): string {
  return join(run, 'attempts', record.attempt);
}

/** The steps of a committed episode. */
export async function readSteps(run: string, record: EpisodeRecord): Promise<StepRecord[]> {
  return readLines<StepRecord>(join(attemptPath(run, record), 'steps.jsonl'));
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
