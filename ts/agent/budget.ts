/** What an agent may spend on its models: tokens, calls, dollars. One budget can be shared by many episodes. */
import { BoqError } from '../core/errors.js';
import type { Usage } from '../store/types.js';

/** US dollars for a million tokens in and out. */
export interface Price {
  input: number;
  output: number;
}

/** Prices by model name; those of the paper's cost section. A name matches the longest entry that it begins with. */
export const defaultPrices: Readonly<Record<string, Price>> = {
  'gpt-4.1': { input: 2, output: 8 },
  'qwen2.5-vl-72b': { input: 1, output: 4 },
  'qwen2.5-vl-7b': { input: 0.15, output: 0.6 },
  'qwen2.5-vl-3b': { input: 0.1, output: 0.4 },
};

/** Limits of a budget; one left out does not bind. */
export interface BudgetLimits {
  maxUsd?: number;
  /** Input and output together. */
  maxTokens?: number;
  maxCalls?: number;
  /** Since the budget was made. */
  maxMinutes?: number;
  /** Added to {@link defaultPrices}. */
  prices?: Readonly<Record<string, Price>>;
}

/** Counts what calls cost, and says when a limit is reached. */
export class Budget {
  readonly #limits: BudgetLimits;
  readonly #prices: Readonly<Record<string, Price>>;
  #tokens = 0;
  #calls = 0;
  #usd = 0;
  readonly #now: () => number;
  readonly #begun: number;

  /** @param now milliseconds of a clock that only goes forward */
  constructor(limits: BudgetLimits, now: () => number = () => performance.now()) {
    this.#now = now;
    this.#begun = now();
    this.#limits = limits;
    this.#prices = { ...defaultPrices, ...limits.prices };
  }

  get spent(): { tokens: number; calls: number; usd: number } {
    return { tokens: this.#tokens, calls: this.#calls, usd: this.#usd };
  }

  /**
   * The embedder costs nothing here: it runs in this process.
   *
   * @throws BOQ_USAGE where dollars are limited and the model has no price
   */
  add({ purpose, model, inputTokens, outputTokens }: Usage): void {
    if (purpose === 'embedder') return;
    this.#calls++;
    this.#tokens += inputTokens + outputTokens;
    const price = priceOf(model, this.#prices);
    if (price) this.#usd += (inputTokens * price.input + outputTokens * price.output) / 1e6;
    else if (this.#limits.maxUsd !== undefined) {
      throw new BoqError(
        'BOQ_USAGE',
        `A limit in dollars needs the price of "${model}", which is not known: give it, or limit tokens or calls.`,
      );
    }
  }

  /** Which limit is met, in words; null while there is something left. */
  exhausted(): string | null {
    const { maxUsd, maxTokens, maxCalls, maxMinutes } = this.#limits;
    if (maxMinutes !== undefined && this.#now() - this.#begun >= maxMinutes * 60_000) {
      return `${maxMinutes} minutes have passed`;
    }
    if (maxCalls !== undefined && this.#calls >= maxCalls)
      return `${this.#calls} of ${maxCalls} calls are used`;
    if (maxTokens !== undefined && this.#tokens >= maxTokens) {
      return `${this.#tokens} of ${maxTokens} tokens are used`;
    }
    if (maxUsd !== undefined && this.#usd >= maxUsd) {
      return `${this.#usd.toFixed(4)} of ${maxUsd} dollars are used`;
    }
    return null;
  }
}

/** The price of the longest known name that the model's begins with, whatever its case and publisher. */
export function priceOf(
  model: string,
  prices: Readonly<Record<string, Price>> = defaultPrices,
): Price | null {
  const name = model.toLowerCase().split('/').at(-1) ?? '';
  const known = Object.keys(prices)
    .filter((entry) => name.startsWith(entry.toLowerCase()))
    .sort((a, b) => b.length - a.length);
  return known[0] === undefined ? null : prices[known[0]]!;
}
