/** Files that appear whole or not at all. */
import { randomUUID } from 'node:crypto';
import { link, open, unlink } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { BoqError } from '../core/errors.js';

/**
 * Publishes a file under a name that nobody has taken: a finished temporary file beside it is linked to the name,
 * which the file system does for one of all who try.
 * @returns false where the name was taken already; the existing file is left as it is
 * @throws BOQ_FILE_WRITE
 */
export async function createIfAbsent(path: string, content: string): Promise<boolean> {
  const temporary = join(dirname(path), `.${randomUUID()}.tmp`);
  try {
    await writeSynced(temporary, content);
    await link(temporary, path);
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false;
    throw writeFault(path, error);
  } finally {
    await unlink(temporary).catch(() => undefined);
  }
}

async function writeSynced(path: string, content: string): Promise<void> {
  const file = await open(path, 'wx');
  try {
    await file.writeFile(content);
    await file.datasync();
  } finally {
    await file.close();
  }
}

/** A failed write as BOQ_FILE_WRITE, with what to do where the cause is plain. Other errors of ours pass through. */
export function writeFault(path: string, error: unknown): BoqError {
  if (error instanceof BoqError) return error;
  const { code, message } = error as NodeJS.ErrnoException;
  const advice =
    code === 'ENOSPC'
      ? 'free some space and run the same command again, it continues'
      : code === 'EACCES' || code === 'EROFS'
        ? 'choose a folder you may write to with --out'
        : 'check the disk and run the same command again, it continues';
  return new BoqError('BOQ_FILE_WRITE', `Expected to write ${path}, got ${message}: ${advice}.`, {
    cause: error,
    details: { path, code: code ?? null },
  });
}
