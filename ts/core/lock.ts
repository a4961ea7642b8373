/** One writer for a folder at a time, across processes. A lock whose process is gone does not count. */
import { readFileSync } from 'node:fs';
import { link, readFile, rm, writeFile } from 'node:fs/promises';
import { hostname } from 'node:os';
import { BoqError } from './errors.js';

/**
 * Creates `path` for this process, or fails at once.
 *
 * @param what names the work in the message.
 * @returns a function that gives the lock back.
 * @throws BoqError BOQ_BUSY where a living process holds it.
 */
export async function acquireLock(path: string, what: string): Promise<() => Promise<void>> {
  const mine = JSON.stringify({ pid: process.pid, started: startOf(process.pid), host: hostname() });
  const temporary = `${path}.${process.pid}`;
  await writeFile(temporary, mine);
  try {
    for (;;) {
      try {
        await link(temporary, path);
        return () => rm(path, { force: true });
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
      }
      const holder = await readFile(path, 'utf8').catch(() => '');
      if (holder !== '' && isAlive(holder)) {
        const { pid } = JSON.parse(holder) as { pid: number };
        throw new BoqError(
          'BOQ_BUSY',
          `${what} is being done by process ${pid} already; wait for it or stop it`,
        );
      }
      await rm(path, { force: true });
    }
  } finally {
    await rm(temporary, { force: true });
  }
}

/** A lock of another host is taken for alive: nothing here can tell. */
function isAlive(holder: string): boolean {
  try {
    const { pid, started, host } = JSON.parse(holder) as { pid: number; started: string; host: string };
    return host !== hostname() || (startOf(pid) === started && started !== '');
  } catch {
    return false;
  }
}

/** When a process started, in clock ticks since boot; a number is reused, a number with its start is not. */
function startOf(pid: number): string {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, 'utf8');
    return text.slice(text.lastIndexOf(')') + 2).split(' ')[19] ?? '';
  } catch {
    try {
      process.kill(pid, 0);
      return 'alive';
    } catch {
      return '';
    }
  }
}
