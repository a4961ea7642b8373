/** The tiny checkpoint, made once for all test files of a run. */
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { writeTinyCheckpoint } from '../../ts/learning/tiny-checkpoint.js';

export async function tinyCheckpoint(): Promise<string> {
  const folder = join(fileURLToPath(new URL('../../', import.meta.url)), 'models', 'tiny');
  await writeTinyCheckpoint(folder);
  return folder;
}
