/**
 * One stream of embedding rows on disk: deduplicated by content, in shards of fixed size, resumable after a kill at
 * any point.
 *
 *     state-00000.safetensors   a finished shard: one tensor "rows" [rowsPerShard, width]
 *     state-00001.part          the shard being filled; the same format, its row count not yet true
 *     state.keys                16 bytes a row: the content that each row holds
 *
 * A row counts once its key is on disk. Rows are flushed before their keys, so what a kill leaves behind beyond the
 * keys is cut off at the next opening, and nothing that counts is incomplete.
 */
import { constants } from 'node:fs';
import { type FileHandle, open, readdir, readFile, rename, rm, truncate } from 'node:fs/promises';
import { join } from 'node:path';
import { BoqError } from '../core/errors.js';
import { bytesView, safetensorsHeader } from '../core/safetensors.js';
import { KEY_BYTES, KeyTable } from './key-table.js';

/** Room for the header, whatever the final row count is. */
const HEADER_BYTES = 256;

export type RowDtype = 'float32' | 'bfloat16';

export interface RowFormat {
  width: number;
  dtype: RowDtype;
  rowsPerShard: number;
}

export class RowStream {
  readonly name: string;
  readonly #folder: string;
  readonly #format: RowFormat;
  readonly #rowBytes: number;
  readonly #table: KeyTable;
  readonly #keys: FileHandle;
  /** Rows whose vectors were appended, and of those the ones whose keys are on disk. */
  #written: number;
  #flushed: number;
  #part: FileHandle | null = null;

  private constructor(name: string, folder: string, format: RowFormat, table: KeyTable, keys: FileHandle) {
    this.name = name;
    this.#folder = folder;
    this.#format = format;
    this.#rowBytes = rowBytes(format);
    this.#table = table;
    this.#keys = keys;
    this.#written = table.rows;
    this.#flushed = table.rows;
  }

  /** Opens a stream where an earlier process left it, or an empty one. */
  static async open(folder: string, name: string, format: RowFormat): Promise<RowStream> {
    const keysPath = join(folder, `${name}.keys`);
    const rows = await recover(folder, name, format);
    const keys = await open(keysPath, constants.O_RDWR | constants.O_CREAT);
    await keys.truncate(rows * KEY_BYTES);
    const table = KeyTable.fromBytes(await readFile(keysPath));
    return new RowStream(name, folder, format, table, keys);
  }

  /** Removes every file of a stream. */
  static async discard(folder: string, name: string): Promise<void> {
    for (const file of await readdir(folder)) {
      if (file === `${name}.keys` || file.startsWith(`${name}-`))
        await rm(join(folder, file), { force: true });
    }
  }

  /** Rows assigned, whether their vectors have come or not. */
  get rows(): number {
    return this.#table.rows;
  }

  /** The row of a content. Where it is new, its vector must be appended, in the order of rows. */
  assign(key: Uint8Array): { row: number; isNew: boolean } {
    return this.#table.add(key);
  }

  /**
   * Takes the vectors of the next rows, [n, width].
   *
   * @throws BoqError BOQ_NOT_FINITE, BOQ_FILE_WRITE
   */
  async append(vectors: Float32Array): Promise<void> {
    const { width, rowsPerShard } = this.#format;
    const count = vectors.length / width;
    const broken = vectors.findIndex((value) => !Number.isFinite(value));
    if (broken >= 0) {
      throw new BoqError(
        'BOQ_NOT_FINITE',
        `embeddings must be finite, but ${this.name} row ${this.#written + Math.floor(broken / width)} is not`,
      );
    }
    for (let done = 0; done < count; ) {
      const inShard = this.#written % rowsPerShard;
      const take = Math.min(count - done, rowsPerShard - inShard);
      const chunk = encodeRows(vectors.subarray(done * width, (done + take) * width), this.#format.dtype);
      const part = await this.#openPart();
      await writeFully(part, chunk, HEADER_BYTES + inShard * this.#rowBytes);
      this.#written += take;
      done += take;
      if (this.#written % rowsPerShard === 0) await this.#closeShard(rowsPerShard);
    }
  }

  /** Makes everything appended so far survive a kill and a power cut. */
  async flush(): Promise<void> {
    if (this.#written === this.#flushed) return;
    await this.#part?.datasync();
    const keys = this.#table.bytes(this.#flushed, this.#written);
    await writeFully(this.#keys, keys, this.#flushed * KEY_BYTES);
    await this.#keys.datasync();
    this.#flushed = this.#written;
  }

  /**
   * Ends the last shard.
   *
   * @returns the row count and the shards' file names.
   */
  async finish(): Promise<{ rows: number; shards: string[] }> {
    if (this.#written !== this.rows) {
      throw new BoqError(
        'BOQ_INTERNAL',
        `${this.name}: ${this.rows} rows were assigned, ${this.#written} came`,
      );
    }
    const { rowsPerShard } = this.#format;
    const rest = this.#written % rowsPerShard;
    if (rest > 0) {
      await this.#openPart();
      await this.#closeShard(rest);
    }
    await this.close();
    const count = Math.ceil(this.#written / rowsPerShard);
    return { rows: this.#written, shards: Array.from({ length: count }, (_, i) => shardName(this.name, i)) };
  }

  /** Keeps what was appended and lets go of the files; a later open() continues. */
  async close(): Promise<void> {
    await this.flush();
    await this.#part?.close();
    this.#part = null;
    await this.#keys.close();
  }

  async #openPart(): Promise<FileHandle> {
    this.#part ??= await open(
      join(this.#folder, partName(this.name, Math.floor(this.#written / this.#format.rowsPerShard))),
      constants.O_RDWR | constants.O_CREAT,
    );
    return this.#part;
  }

  async #closeShard(rows: number): Promise<void> {
    const part = this.#part as FileHandle;
    await writeFully(part, shardHeader(rows, this.#format), 0);
    await this.flush();
    await part.datasync();
    await part.close();
    this.#part = null;
    const shard = Math.ceil(this.#written / this.#format.rowsPerShard) - 1;
    await rename(
      join(this.#folder, partName(this.name, shard)),
      join(this.#folder, shardName(this.name, shard)),
    );
  }
}

/**
 * Brings the files of a stream into a state that open() can continue from.
 *
 * @returns how many rows count.
 */
async function recover(folder: string, name: string, format: RowFormat): Promise<number> {
  const files = new Set(await readdir(folder));
  let shards = 0;
  while (files.has(shardName(name, shards))) shards++;
  const keyed = files.has(`${name}.keys`)
    ? Math.floor((await size(join(folder, `${name}.keys`))) / KEY_BYTES)
    : 0;
  // A run that grew goes on in its last, shorter shard.
  const lastRows = shards > 0 ? await rowsIn(join(folder, shardName(name, shards - 1)), format) : 0;
  if (shards > 0 && lastRows < format.rowsPerShard) {
    shards--;
    await rename(join(folder, shardName(name, shards)), join(folder, partName(name, shards)));
    files.add(partName(name, shards));
  }
  const part = join(folder, partName(name, shards));
  const partRows = files.has(partName(name, shards)) ? await rowsIn(part, format) : 0;
  const rows = Math.min(keyed, shards * format.rowsPerShard + partRows);
  if (rows < shards * format.rowsPerShard) {
    // Shards without their keys cannot be matched to contents any more: start this stream again.
    await RowStream.discard(folder, name);
    return 0;
  }
  const kept = rows - shards * format.rowsPerShard;
  if (kept === format.rowsPerShard) {
    // Killed between the last flush of a full shard and its renaming.
    await rename(part, join(folder, shardName(name, shards)));
  } else if (partRows > 0) {
    await truncate(part, HEADER_BYTES + kept * rowBytes(format));
  }
  return rows;
}

async function rowsIn(path: string, format: RowFormat): Promise<number> {
  return Math.max(0, Math.floor(((await size(path)) - HEADER_BYTES) / rowBytes(format)));
}

async function size(path: string): Promise<number> {
  const file = await open(path, 'r');
  try {
    return (await file.stat()).size;
  } finally {
    await file.close();
  }
}

function rowBytes({ width, dtype }: RowFormat): number {
  return width * (dtype === 'float32' ? 4 : 2);
}

function shardName(name: string, index: number): string {
  return `${name}-${String(index).padStart(5, '0')}.safetensors`;
}

function partName(name: string, index: number): string {
  return `${name}-${String(index).padStart(5, '0')}.part`;
}

function shardHeader(rows: number, { width, dtype }: RowFormat): Uint8Array {
  const spec = { name: 'rows', dtype: dtype === 'float32' ? 'F32' : 'BF16', shape: [rows, width] } as const;
  return safetensorsHeader([spec], { format: 'pt' }, HEADER_BYTES);
}

function encodeRows(vectors: Float32Array, dtype: RowDtype): Uint8Array {
  if (dtype === 'float32') return bytesView(vectors);
  const words = new Uint32Array(vectors.buffer, vectors.byteOffset, vectors.length);
  const halves = new Uint16Array(words.length);
  words.forEach((word, i) => {
    halves[i] = (word + 0x7fff + ((word >>> 16) & 1)) >>> 16;
  });
  return bytesView(halves);
}

async function writeFully(file: FileHandle, data: Uint8Array, position: number): Promise<void> {
  try {
    for (let done = 0; done < data.byteLength; ) {
      const { bytesWritten } = await file.write(data, done, data.byteLength - done, position + done);
      done += bytesWritten;
    }
  } catch (cause) {
    const { message } = cause as Error;
    throw new BoqError('BOQ_FILE_WRITE', `embeddings could not be written: ${message}`, { cause });
  }
}
