/**
 * The journal of a loop: one JSON object a line, appended and synced before the work that follows it begins. What is
 * in it has happened, whatever became of the process; a line that was cut off while it was written has not.
 */
import { type FileHandle, open, readFile, truncate } from 'node:fs/promises';
import { BoqError } from '../../core/errors.js';
import { writeFault } from '../../store/publish.js';
import type { CollectOutcome, Validation } from './types.js';

/** What happened, in order. `at` is an ISO time. */
export type LoopEvent = { at: string } & (
  | { event: 'sitting' }
  | { event: 'playing'; run: string; episodes: number }
  | ({ event: 'collected'; run: string; generation: number } & Omit<CollectOutcome, 'faults'>)
  | { event: 'trained'; generation: number; episodes: number; transitions: number; seconds: number }
  | ({
      event: 'validated';
      /** -1: the policy alone. */
      generation: number;
      /** Training episodes behind the model. */
      trained: number;
    } & Validation)
  | { event: 'finished'; reason: string }
);

/** An event before it is written. */
export type NewLoopEvent = LoopEvent extends infer E ? (E extends LoopEvent ? Omit<E, 'at'> : never) : never;

export class Journal implements AsyncDisposable {
  readonly #path: string;
  readonly #file: FileHandle;
  readonly #events: LoopEvent[];
  /** Appends in the order in which they were asked for. */
  #last: Promise<void> = Promise.resolve();

  private constructor(path: string, file: FileHandle, events: LoopEvent[]) {
    this.#path = path;
    this.#file = file;
    this.#events = events;
  }

  /**
   * Opens the journal to go on, and cuts off a torn last line. One process at a time: the caller holds the lock.
   * @throws BOQ_FILE_CORRUPT, BOQ_FILE_WRITE
   */
  static async open(path: string): Promise<Journal> {
    const { events, bytes } = await readEvents(path);
    try {
      const file = await open(path, 'a');
      await truncate(path, bytes);
      return new Journal(path, file, events);
    } catch (error) {
      throw writeFault(path, error);
    }
  }

  get events(): readonly LoopEvent[] {
    return this.#events;
  }

  /** Resolves when the event is on the disk. @throws BOQ_FILE_WRITE */
  append(event: NewLoopEvent): Promise<void> {
    const entry = { at: new Date().toISOString(), ...event } as LoopEvent;
    this.#last = this.#last.then(async () => {
      try {
        await this.#file.appendFile(`${JSON.stringify(entry)}\n`);
        await this.#file.datasync();
      } catch (error) {
        throw writeFault(this.#path, error);
      }
      this.#events.push(entry);
    });
    return this.#last;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#last.catch(() => undefined);
    await this.#file.close();
  }
}

/** The last event of a kind that fits. */
export function lastEvent<K extends LoopEvent['event']>(
  events: readonly LoopEvent[],
  kind: K,
  fits: (event: Extract<LoopEvent, { event: K }>) => boolean = () => true,
): Extract<LoopEvent, { event: K }> | null {
  for (let index = events.length - 1; index >= 0; index--) {
    const entry = events[index] as Extract<LoopEvent, { event: K }>;
    if (entry.event === kind && fits(entry)) return entry;
  }
  return null;
}

/** All whole lines of a journal; none where it does not exist. @throws BOQ_FILE_CORRUPT */
export async function readJournal(path: string): Promise<LoopEvent[]> {
  return (await readEvents(path)).events;
}

async function readEvents(path: string): Promise<{ events: LoopEvent[]; bytes: number }> {
  const text = await readFile(path, 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return '';
    throw error;
  });
  const whole = text.slice(0, text.lastIndexOf('\n') + 1);
  const events = whole
    .split('\n')
    .slice(0, -1)
    .map((line, index): LoopEvent => {
      try {
        const event = JSON.parse(line) as LoopEvent;
        if (typeof event.event === 'string' && typeof event.at === 'string') return event;
      } catch {
        // Told below, with the line.
      }
      throw new BoqError(
        'BOQ_FILE_CORRUPT',
        `Expected an event in line ${index + 1} of ${path}: cut the file off before that line, what follows is done again.`,
      );
    });
  return { events, bytes: Buffer.byteLength(whole) };
}

/** Minutes and dollars of earlier sittings: a sitting lasted from its first event to its last. */
export function spentBefore(events: readonly LoopEvent[]): { minutes: number; usd: number } {
  let minutes = 0;
  let first = 0;
  let last = 0;
  for (const { at, event } of events) {
    const time = Date.parse(at);
    if (event === 'sitting') {
      minutes += (last - first) / 60_000;
      first = time;
    }
    last = time;
  }
  const costs = new Map<string, number>();
  for (const entry of events) {
    // A run that the budget cut off is counted again from its episodes when it goes on.
    if (entry.event === 'collected') costs.set(entry.run, entry.complete ? entry.usd : 0);
    if (entry.event === 'validated') costs.set(`validation ${entry.generation} ${entry.trained}`, entry.usd);
  }
  const usd = [...costs.values()].reduce((sum, cost) => sum + cost, 0);
  return { minutes: minutes + (last - first) / 60_000, usd };
}
