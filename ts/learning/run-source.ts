/** A run folder as the embed stage reads it. */
import { readFile } from 'node:fs/promises';
import { BoqError } from '../core/errors.js';
import { type FolderRun, openRun } from '../store/run.js';
import type { EpisodeRecord, StepRecord } from '../store/types.js';

/** What the stage needs of a run: its committed episodes in a fixed order, and their contents. */
export interface RunSource {
  /** The run's folder. */
  readonly folder: string;
  episodes(): Promise<EpisodeRecord[]>;
  steps(episode: EpisodeRecord): Promise<StepRecord[]>;
  /** The bytes of an image that an observation of the episode names. */
  screenshot(episode: EpisodeRecord, name: string): Promise<Uint8Array>;
}

/** @throws BoqError BOQ_FILE_NOT_FOUND, BOQ_RUN_INVALID */
export async function openRunSource(path: string): Promise<RunSource> {
  const run: FolderRun = await openRun(path);
  return {
    folder: run.folder,
    episodes: async () => {
      const records: EpisodeRecord[] = [];
      for await (const record of run.records()) records.push(record);
      return records;
    },
    steps: (episode): Promise<StepRecord[]> => run.steps(episode),
    screenshot: async (episode, name) => {
      const file = run.shotPath(episode.attempt, name);
      return readFile(file).catch((cause: Error) => {
        throw new BoqError(
          'BOQ_RUN_INVALID',
          `${run.folder}: a screenshot is missing or unreadable, ${cause.message}`,
          {
            cause,
          },
        );
      });
    },
  };
}
