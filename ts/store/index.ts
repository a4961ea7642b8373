/** The run format and where it lives: write, commit, read, resume. */
export type { AttemptWriter, EpisodeEnd, Image } from './attempt.js';
export { keyName } from './keys.js';
export { createMasker, type Masker, maskedJson } from './masking.js';
export {
  type CreateRun,
  FolderRun,
  openRun,
  type RunStore,
  type StoredAttempt,
  type StoredEpisode,
  type StoreOptions,
} from './run.js';
export { schemas } from './schemas.js';
export type * from './types.js';
