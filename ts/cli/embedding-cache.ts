/** The content cache as commands that score candidates offer it. */
import type { Command } from 'commander';
import { ContentCache, defaultCacheFolder } from '../learning/content-cache.js';

export interface CacheFlags {
  /** false for --no-cache. */
  cache: string | false;
}

export function addCacheOptions(command: Command): Command {
  return command
    .option(
      '--cache <folder>',
      'where embeddings of earlier commands are kept by content',
      defaultCacheFolder(),
    )
    .option('--no-cache', 'compute everything anew');
}

/** @returns null where none is wanted. @throws BOQ_FILE_WRITE */
export async function openCache({ cache }: CacheFlags): Promise<ContentCache | null> {
  return cache === false ? null : ContentCache.open(cache);
}
