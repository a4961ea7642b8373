/**
 * Labels: outcomes of episodes judged again. Native training reads the same file and checks it line by line; here it
 * is read for the plan that a user sees before training starts.
 */
import { readFile } from 'node:fs/promises';
import { BoqError } from '../core/errors.js';
import type { EpisodeKey } from '../store/types.js';

/** One line of a labels file. */
export interface Label {
  key: EpisodeKey;
  success: boolean;
  /** Who or what judged. */
  judge?: string;
  note?: string;
}

const fields = ['benchmark', 'task', 'seed', 'policy', 'selector', 'generation', 'repeat'] as const;

function identity(key: EpisodeKey): string {
  return JSON.stringify(fields.map((field) => key[field]));
}

/** The outcomes that a labels file gives to episodes. */
export class Labels {
  readonly #success = new Map<string, boolean>();

  /** @throws BoqError BOQ_FILE_NOT_FOUND, BOQ_DATA_INVALID (with the line) */
  static async read(path: string): Promise<Labels> {
    const text = await readFile(path, 'utf8').catch((error: unknown) => {
      throw new BoqError('BOQ_FILE_NOT_FOUND', `cannot read the labels ${path}: ${(error as Error).message}`);
    });
    const labels = new Labels();
    for (const [index, line] of text.split('\n').entries()) {
      if (line.trim() === '') continue;
      let label: Partial<Label> | null;
      try {
        label = JSON.parse(line);
      } catch (error) {
        throw new BoqError('BOQ_DATA_INVALID', `${path}:${index + 1}: ${(error as Error).message}`);
      }
      if (typeof label?.key !== 'object' || label.key === null || typeof label.success !== 'boolean') {
        throw new BoqError(
          'BOQ_DATA_INVALID',
          `${path}:${index + 1}: expected {"key": {...}, "success": true or false}, got ${line.slice(0, 80)}`,
        );
      }
      labels.#success.set(identity(label.key), label.success);
    }
    return labels;
  }

  /** The new outcome of an episode, or undefined where it keeps its own. */
  of(key: EpisodeKey): boolean | undefined {
    return this.#success.get(identity(key));
  }
}
