/**
 * The page policy: proposes actions without a model, by comparing the visible elements of any page with the words of
 * the instruction. An honest baseline: general, written once, not tuned on a benchmark.
 */
import { BoqError } from '../../core/errors.js';
import type { RandomSource } from '../../core/random.js';
import type { ProposalEvent, ProposeRequest, Proposer } from '../types.js';
import { readInstruction } from './instruction.js';
import { type Option, rankOptions } from './options.js';
import { readSituation } from './situation.js';
import { type RefittedWeights, reweigh } from './weights.js';

/** How the page policy orders its candidates. */
export interface PagePolicyOptions {
  /** `best-first` puts the own best candidate first and samples the others; `sampled` draws all of them. */
  order?: 'best-first' | 'sampled';
  /** Of the softmax over scores that candidates are drawn from; above 0. */
  temperature?: number;
  /** Other weights than its own: another policy, under another name. */
  refit?: RefittedWeights;
}

/** Draws one index by softmax(score / temperature). */
function draw(options: readonly Option[], temperature: number, random: RandomSource): number {
  const top = Math.max(...options.map(({ score }) => score));
  const weights = options.map(({ score }) => Math.exp((score - top) / temperature));
  let left = random.next() * weights.reduce((sum, weight) => sum + weight, 0);
  for (let index = 0; index < weights.length; index++) {
    left -= weights[index] ?? 0;
    if (left < 0) return index;
  }
  return weights.length - 1;
}

/** One phrase from the facts, in the order in which they were found. */
export function thoughtOf(option: Option): string {
  return option.facts.map(({ phrase }) => phrase).join(' and ');
}

/**
 * The page policy: proposes from what the page shows, without any model. Frozen: its weights are not tuned on benchmarks.
 */
export class PagePolicy implements Proposer {
  readonly name: string;
  readonly #bestFirst: boolean;
  readonly #temperature: number;
  readonly #refit: RefittedWeights | undefined;

  /** @throws BoqError BOQ_INVALID_ARGUMENT for a temperature that is not above 0. */
  constructor({ order = 'best-first', temperature = 1, refit }: PagePolicyOptions = {}) {
    if (!(temperature > 0)) {
      throw new BoqError(
        'BOQ_INVALID_ARGUMENT',
        `expected a temperature above 0 for the page policy, got ${temperature}`,
      );
    }
    this.#bestFirst = order === 'best-first';
    this.#temperature = temperature;
    this.#refit = refit;
    const suffix = temperature === 1 ? '' : ` T=${temperature}`;
    const refitted = refit ? `-refit-${refit.name}` : '';
    this.name = `${this.#bestFirst ? 'page' : 'page-sampled'}${refitted}${suffix}`;
  }

  async *propose(request: ProposeRequest): AsyncGenerator<ProposalEvent> {
    const situation = readSituation(
      readInstruction(request.instruction),
      request.observation,
      request.history,
    );
    const ranked = rankOptions(situation);
    const pool = this.#refit ? reweigh(ranked, this.#refit) : ranked;
    for (let offered = 0; offered < request.n && pool.length > 0; offered++) {
      const index = offered === 0 && this.#bestFirst ? 0 : draw(pool, this.#temperature, request.random);
      const [option] = pool.splice(index, 1);
      if (!option) return;
      yield { type: 'candidate', candidate: { action: option.action, thought: thoughtOf(option), note: '' } };
    }
  }
}
