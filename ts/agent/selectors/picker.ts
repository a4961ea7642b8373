/**
 * The paper's picker (Fig. 11): a second judgement reads the task, what was done, and the numbered candidates, and
 * names one with its reason. Who judges is behind one interface: a model at an endpoint, or words alone.
 */
import { BoqError } from '../../core/errors.js';
import type { Candidate, Usage } from '../../store/types.js';
import type { Selector, SelectRequest } from '../types.js';

/** Chooses among numbered candidates and says why. */
export interface Picker {
  /** Becomes part of the selector's name. */
  readonly name: string;
  pick(request: SelectRequest): Promise<{ index: number; reason: string; usage?: Usage[] }>;
}

/** A selector that leaves the choice to a picker. */
export function pickerSelector(picker: Picker): Selector {
  const name = `picker@by=${picker.name}`;
  return {
    name,
    candidateCount: (n) => n,
    needsScores: false,
    select: async (request) => {
      if (request.candidates.length === 1)
        return { selector: name, index: 0, reason: 'the only one offered' };
      const { index, reason, usage } = await picker.pick(request);
      if (!(index in request.candidates)) {
        throw new BoqError(
          'BOQ_PROPOSER',
          `Expected the picker ${picker.name} to name one of ${request.candidates.length} candidates, got ${index}.`,
        );
      }
      return { selector: name, index, reason, ...(usage ? { usage } : {}) };
    },
  };
}

/**
 * Picks without a model: the candidate that shares most words with the task, less for each time it was done already;
 * of equals the earlier.
 */
export const wordPicker: Picker = {
  name: 'words',
  pick: async ({ instruction, candidates, history }) => {
    const wanted = wordsOf(instruction);
    const scores = candidates.map((candidate) => {
      const action = JSON.stringify(candidate.action);
      const done = history.filter((entry) => JSON.stringify(entry.action) === action).length;
      const shared = [...wordsOf(textOf(candidate))].filter((word) => wanted.has(word)).length;
      return { shared, done, total: shared - 2 * done };
    });
    const best = Math.max(...scores.map(({ total }) => total));
    const index = scores.findIndex(({ total }) => total === best);
    const { shared, done } = scores[index]!;
    return { index, reason: `shares ${shared} words with the task, done ${done} times before` };
  },
};

function textOf({ action }: Candidate): string {
  return Object.entries(action)
    .filter(([name, value]) => name !== 'type' && typeof value === 'string')
    .map(([, value]) => value)
    .join(' ');
}

function wordsOf(text: string): Set<string> {
  return new Set(text.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? []);
}
