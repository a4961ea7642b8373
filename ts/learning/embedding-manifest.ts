/** manifest.json of an embedding folder: what is in it, written last, so that a folder that has one is complete. */
import { readFile, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { BoqError } from '../core/errors.js';
import type { EmbedderProfile } from './profile.js';

/** The streams of rows in an embedding folder. */
export const streamNames = ['state', 'action', 'task'] as const;
export type StreamName = (typeof streamNames)[number];

/** manifest.json of an embedding folder; docs/data-formats.md describes the fields. */
export interface EmbeddingManifest {
  version: 1;
  fingerprint: string;
  profile: EmbedderProfile;
  /** Digest of the episodes that were embedded: another one means that the run has grown. */
  source: string;
  width: number;
  dtype: 'float32' | 'bfloat16';
  rowsPerShard: number;
  streams: Record<StreamName, { rows: number; shards: string[] }>;
  index: string;
  transitions: number;
  candidates: number;
  episodes: number;
  taskNames: string[];
  successRate: number;
  sha256: Record<string, string>;
}

/**
 * @returns null where the folder has no manifest, so is not complete.
 * @throws BoqError BOQ_FILE_CORRUPT where it is no JSON
 */
export async function readManifest(folder: string): Promise<EmbeddingManifest | null> {
  const path = join(folder, 'manifest.json');
  const text = await readFile(path, 'utf8').catch(() => null);
  if (text === null) return null;
  try {
    return JSON.parse(text) as EmbeddingManifest;
  } catch (cause) {
    throw new BoqError('BOQ_FILE_CORRUPT', `${path} must hold JSON; delete it and embed the run again`, {
      cause,
    });
  }
}

/** Makes a folder complete: the manifest is there as a whole or not at all, whenever the process ends. */
export async function writeManifest(folder: string, manifest: EmbeddingManifest): Promise<void> {
  const temporary = join(folder, 'manifest.json.part');
  await writeFile(temporary, `${JSON.stringify(manifest, null, 2)}\n`, { flush: true });
  await rename(temporary, join(folder, 'manifest.json'));
}
