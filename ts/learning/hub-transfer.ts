/**
 * One file from a hub into the blob folder of the Hugging Face cache: resumed where an earlier attempt ended,
 * checked against the size and hash that the repository lists, and only then given its name.
 */
import { createHash, type Hash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { open, rename, rm, stat } from 'node:fs/promises';
import { BoqError } from '../core/errors.js';
import { type HubClient, PassingFault, refusal } from './hub-requests.js';

export interface RemoteFile {
  path: string;
  size: number;
  /** sha256 of the content for large files; git's blob hash for the others. The name of the blob. */
  etag: string;
  kind: 'sha256' | 'git';
}

/**
 * Fetches `url` to `blob`, unless it is there.
 *
 * @param onBytes told how many bytes of this file are there.
 * @throws BoqError BOQ_HUB, BOQ_FILE_CORRUPT where the content is not what the repository lists, BOQ_FILE_WRITE
 */
export async function transfer(
  client: HubClient,
  url: string,
  file: RemoteFile,
  blob: string,
  onBytes: (bytes: number) => void,
): Promise<void> {
  if ((await sizeOf(blob)) === file.size) {
    onBytes(file.size);
    return;
  }
  // The name that Python's client uses, so that either can finish what the other began.
  const partial = `${blob}.incomplete`;
  await client.retry(file.path, (signal) => attempt(client, url, file, partial, onBytes, signal));
  const found = await hashOf(partial, file);
  if (found !== file.etag) {
    await rm(partial, { force: true });
    throw new BoqError(
      'BOQ_FILE_CORRUPT',
      `${file.path} must have the ${file.kind} hash ${file.etag}, but what came has ${found}; it was deleted, fetch again`,
    );
  }
  await rename(partial, blob);
}

/** Appends what is missing. A connection that breaks loses nothing: the next attempt goes on from the file's size. */
async function attempt(
  client: HubClient,
  url: string,
  file: RemoteFile,
  partial: string,
  onBytes: (bytes: number) => void,
  signal: AbortSignal,
): Promise<void> {
  let done = Math.max(0, await sizeOf(partial));
  if (done > file.size) {
    await rm(partial);
    done = 0;
  }
  onBytes(done);
  if (done === file.size && done > 0) return;
  const stall = new AbortController();
  const response = await client.request(url, {
    headers: { ...(done > 0 ? { range: `bytes=${done}-` } : {}), 'accept-encoding': 'identity' },
    signal,
  });
  if (!response.ok || response.body === null) {
    await response.body?.cancel();
    throw refusal(file.path, response.status);
  }
  // A server without ranges sends the whole file again.
  if (
    done > 0 &&
    !(response.status === 206 && response.headers.get('content-range')?.startsWith(`bytes ${done}-`))
  ) {
    done = 0;
  }
  const output = await open(partial, done > 0 ? 'r+' : 'w').catch((cause: Error) => {
    throw new BoqError('BOQ_FILE_WRITE', `${partial} cannot be written: ${cause.message}`, { cause });
  });
  const watch = setTimeout(() => stall.abort(), client.settings.stallMs);
  const reader = response.body.getReader();
  const stalled = new Promise<never>((_, reject) => {
    stall.signal.addEventListener('abort', () => reject(new PassingFault('no byte came for too long')));
  });
  // Lost races must not count as unhandled.
  stalled.catch(() => undefined);
  try {
    for (;;) {
      const { value, done: ended } = await Promise.race([reader.read(), stalled]);
      if (ended) break;
      watch.refresh();
      try {
        await output.write(value, 0, value.length, done);
      } catch (cause) {
        throw new BoqError('BOQ_FILE_WRITE', `${partial} cannot be written: ${(cause as Error).message}`, {
          cause,
        });
      }
      done += value.length;
      onBytes(done);
      if (done > file.size) break;
    }
  } finally {
    clearTimeout(watch);
    await reader.cancel().catch(() => undefined);
    await output.close();
  }
  if (done < file.size) throw new PassingFault(`the connection ended after ${done} of ${file.size} bytes`);
  if (done > file.size) {
    await rm(partial, { force: true });
    throw new BoqError(
      'BOQ_FILE_CORRUPT',
      `${file.path} must have ${file.size} bytes, but more came; it was deleted`,
    );
  }
}

async function hashOf(path: string, { kind, size }: RemoteFile): Promise<string> {
  const hash: Hash = createHash(kind === 'sha256' ? 'sha256' : 'sha1');
  if (kind === 'git') hash.update(`blob ${size}\0`);
  for await (const chunk of createReadStream(path, { highWaterMark: 1 << 20 })) hash.update(chunk as Buffer);
  return hash.digest('hex');
}

/** -1 where there is no such file. */
async function sizeOf(path: string): Promise<number> {
  return stat(path).then(
    (found) => found.size,
    () => -1,
  );
}
