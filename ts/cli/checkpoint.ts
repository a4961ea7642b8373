/** The checkpoint a command works with: what the user names, else the one that set-up makes. */
import { resolveCheckpoint } from '../learning/checkpoints.js';
import { builtInCheckpoint, writeTinyCheckpoint } from '../learning/tiny-checkpoint.js';

/** @throws BoqError BOQ_FILE_NOT_FOUND saying how to get it. */
export async function findCheckpoint(name: string | undefined): Promise<string> {
  if (name !== undefined) return resolveCheckpoint(name);
  await writeTinyCheckpoint(builtInCheckpoint);
  return builtInCheckpoint;
}
