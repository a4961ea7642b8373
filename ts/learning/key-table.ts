/**
 * Content keys and the row each one has: an open-addressing hash table over 16-byte keys. Rows are numbered in the
 * order of insertion. 4 million rows take about 100 MB, a tenth of what a Map of strings would.
 */
import { createHash, type Hash } from 'node:crypto';

const WORDS = 4;
export const KEY_BYTES = 4 * WORDS;

/** The first 16 bytes of SHA-256 over parts, each preceded by its length, so that parts cannot run together. */
export function contentKey(...parts: readonly (string | Uint8Array)[]): Uint8Array {
  const hash: Hash = createHash('sha256');
  for (const part of parts) {
    const bytes = typeof part === 'string' ? Buffer.from(part) : part;
    hash.update(`${bytes.byteLength}:`).update(bytes);
  }
  return hash.digest().subarray(0, KEY_BYTES);
}

export class KeyTable {
  /** Keys by row. */
  #keys = new Uint32Array(WORDS * 1024);
  /** Row + 1 by slot; 0 is a free slot. At most half of the slots are taken. */
  #slots = new Int32Array(2048);
  #rows = 0;

  /** Takes keys back as `bytes()` gave them. */
  static fromBytes(bytes: Uint8Array): KeyTable {
    const table = new KeyTable();
    for (let at = 0; at + KEY_BYTES <= bytes.byteLength; at += KEY_BYTES) {
      table.add(bytes.subarray(at, at + KEY_BYTES));
    }
    return table;
  }

  get rows(): number {
    return this.#rows;
  }

  /** The key's row; a key that was not there before gets the next one. */
  add(key: Uint8Array): { row: number; isNew: boolean } {
    if (2 * (this.#rows + 1) > this.#slots.length) this.#grow();
    const words = wordsOf(key);
    let slot = this.#firstSlot(words[0] as number);
    for (;;) {
      const row = (this.#slots[slot] as number) - 1;
      if (row < 0) {
        this.#keys.set(words, WORDS * this.#rows);
        this.#slots[slot] = ++this.#rows;
        return { row: this.#rows - 1, isNew: true };
      }
      if (words.every((word, i) => word === this.#keys[WORDS * row + i])) return { row, isNew: false };
      slot = (slot + 1) & (this.#slots.length - 1);
    }
  }

  /** The keys of rows [from, to). */
  bytes(from: number, to: number): Uint8Array {
    return new Uint8Array(this.#keys.slice(WORDS * from, WORDS * to).buffer);
  }

  #firstSlot(word: number): number {
    // The keys are SHA-256 already: any of their bits are as good as a hash.
    return word & (this.#slots.length - 1);
  }

  #grow(): void {
    const keys = new Uint32Array(2 * this.#keys.length);
    keys.set(this.#keys);
    this.#keys = keys;
    this.#slots = new Int32Array(2 * this.#slots.length);
    for (let row = 0; row < this.#rows; row++) {
      let slot = this.#firstSlot(keys[WORDS * row] as number);
      while (this.#slots[slot] !== 0) slot = (slot + 1) & (this.#slots.length - 1);
      this.#slots[slot] = row + 1;
    }
  }
}

function wordsOf(key: Uint8Array): Uint32Array {
  const words = new Uint32Array(WORDS);
  new Uint8Array(words.buffer).set(key.subarray(0, KEY_BYTES));
  return words;
}
