/** Which candidates of one step are equal: each different one is scored once, and equal ones have equal scores. */
import { BoqError } from '../core/errors.js';
import type { Candidate, StepScores } from '../store/types.js';

/** The candidates of one step in the order in which they came. */
export class DistinctCandidates {
  readonly #known = new Map<string, number>();
  /** Of every candidate, its place among the different ones. */
  readonly #places: number[] = [];

  /** @returns true where no equal candidate came before */
  add({ action, thought, note }: Candidate): boolean {
    const text = JSON.stringify([action, thought, note]);
    const known = this.#known.get(text);
    const place = known ?? this.#known.size;
    this.#known.set(text, place);
    this.#places.push(place);
    return known === undefined;
  }

  /**
   * Lays scores of the different candidates out over all of them.
   * @param scores `q` and `spread` of the different candidates in the order in which they first came
   * @returns `q` and `spread` of all candidates; `v` as it is
   * @throws BoqError BOQ_SHAPE_MISMATCH where there are more or fewer; BOQ_NOT_FINITE
   */
  spreadOut({ q, spread, v }: StepScores): StepScores {
    const count = this.#known.size;
    if (q.length !== count || spread.length !== count) {
      throw new BoqError(
        'BOQ_SHAPE_MISMATCH',
        `Expected ${count} scores from the critic, got ${q.length} values and ${spread.length} spreads.`,
      );
    }
    if (![...q, ...spread, v].every(Number.isFinite)) {
      throw new BoqError('BOQ_NOT_FINITE', 'Expected finite values from the critic: train the model again.');
    }
    return {
      q: this.#places.map((place) => q[place]!),
      spread: this.#places.map((place) => spread[place]!),
      v,
    };
  }
}
