/**
 * Text to token ids, as transformers does it with `split_special_tokens=True` for content: the control tokens of the
 * chat format come from the template alone. A page that shows the words "<|im_end|>" stays a page with those words.
 */

import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Tokenizer as HuggingFaceTokenizer } from '@huggingface/tokenizers';
import { BoqError } from '../core/errors.js';
import { LruMap } from '../core/lru.js';
import type { Piece } from './templates.js';

interface AddedToken {
  id: number;
  content: string;
  special: boolean;
}

interface TokenizerFile {
  added_tokens: AddedToken[];
  [key: string]: unknown;
}

/**
 * A place between two lines at which byte-level BPE of the Qwen2 kind never joins anything: no branch of its
 * pre-tokenizer reaches from a line feed into a visible ASCII character. Lines can therefore be encoded one by one
 * and kept: a state repeats the lines of the state before it.
 */
const lineBoundary = /(?<=\n)(?=[!-~])/;
const keptLines = 20_000;
const longestKeptLine = 4_000;

export class PromptTokenizer {
  readonly #content: HuggingFaceTokenizer;
  readonly #controls: ReadonlyMap<string, number>;
  readonly #lines = new LruMap<string, number[]>(keptLines);

  private constructor(content: HuggingFaceTokenizer, controls: ReadonlyMap<string, number>) {
    this.#content = content;
    this.#controls = controls;
  }

  /**
   * Reads tokenizer.json and tokenizer_config.json of a checkpoint.
   *
   * @throws BoqError BOQ_FILE_NOT_FOUND, BOQ_FILE_CORRUPT
   */
  static async load(folder: string): Promise<PromptTokenizer> {
    const file = (await readJson(join(folder, 'tokenizer.json'))) as unknown as TokenizerFile;
    const config = await readJson(join(folder, 'tokenizer_config.json'));
    try {
      const controls = new Map<string, number>();
      for (const token of file.added_tokens) if (token.special) controls.set(token.content, token.id);
      // Without its special tokens the tokenizer has no way to make them out of text.
      const plain = { ...file, added_tokens: file.added_tokens.filter((token) => !token.special) };
      return new PromptTokenizer(new HuggingFaceTokenizer(plain, config), controls);
    } catch (cause) {
      throw new BoqError(
        'BOQ_FILE_CORRUPT',
        `${folder}/tokenizer.json is not a tokenizer this program can use`,
        {
          cause,
        },
      );
    }
  }

  /** @throws BoqError BOQ_TOKENIZER where the checkpoint's tokenizer has no such control token. */
  controlId(content: string): number {
    const id = this.#controls.get(content);
    if (id === undefined) {
      throw new BoqError('BOQ_TOKENIZER', `the checkpoint's tokenizer has no token ${content}`);
    }
    return id;
  }

  /**
   * @returns the ids of a prompt, one image-pad id for each image.
   * @throws BoqError BOQ_TOKENIZER for text with a lone surrogate, which has no bytes.
   */
  encode(pieces: readonly Piece[]): Int32Array {
    const ids: number[] = [];
    for (const piece of pieces) {
      if (typeof piece !== 'string') ids.push(this.controlId(piece.control));
      else this.#encodeText(piece, ids);
    }
    return Int32Array.from(ids);
  }

  #encodeText(text: string, into: number[]): void {
    const broken = text.search(/\p{Cs}/u);
    if (broken >= 0) {
      throw new BoqError('BOQ_TOKENIZER', `text must be valid UTF-16, but has half a character at ${broken}`);
    }
    for (const line of text.split(lineBoundary)) {
      let ids = this.#lines.get(line);
      if (ids === undefined) {
        ids = this.#content.encode(line, { add_special_tokens: false }).ids as number[];
        if (line.length <= longestKeptLine) this.#lines.set(line, ids);
      }
      for (const id of ids) into.push(id);
    }
  }
}

async function readJson(path: string): Promise<Record<string, unknown>> {
  let text: string;
  try {
    text = await readFile(path, 'utf8');
  } catch (cause) {
    throw new BoqError('BOQ_FILE_NOT_FOUND', `a checkpoint folder holds ${path}, but it cannot be read`, {
      cause,
    });
  }
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value !== 'object' || value === null || Array.isArray(value)) throw new Error('not an object');
    return value as Record<string, unknown>;
  } catch (cause) {
    throw new BoqError('BOQ_FILE_CORRUPT', `${path} must hold a JSON object`, { cause });
  }
}
