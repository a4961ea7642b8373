/** What a loop may use: minutes, episodes, dollars, each or several. Spent, it ends the collecting, not the loop's care. */
import { Budget, type Price } from '../../agent/budget.js';
import { BoqError } from '../../core/errors.js';
import type { Usage } from '../../store/types.js';

export interface LoopLimits {
  /** Of all sittings together. */
  minutes?: number;
  /** Played for training; validation is not counted. */
  episodes?: number;
  /** Of policy, picker and localizer, by the price table. */
  usd?: number;
  /** Of models, in one sitting: input and output together. */
  tokens?: number;
  /** Of models, in one sitting. */
  calls?: number;
}

const units: readonly (readonly [pattern: RegExp, name: keyof LoopLimits])[] = [
  [/^(m|min|minutes?)$/, 'minutes'],
  [/^(e|ep|episodes?)$/, 'episodes'],
  [/^(usd|dollars?)$/, 'usd'],
];

/**
 * Reads `90min`, `5000episodes`, `2.5usd`, or several with commas.
 * @throws BOQ_USAGE
 */
export function parseLimits(text: string): LoopLimits {
  const limits: LoopLimits = {};
  for (const part of text.split(',')) {
    const match = /^\s*(\d+(?:\.\d+)?)\s*([a-z]+)\s*$/i.exec(part);
    const unit = units.find(([pattern]) => pattern.test(match?.[2]?.toLowerCase() ?? ''))?.[1];
    const value = Number(match?.[1]);
    if (!unit || !(value > 0)) {
      throw new BoqError(
        'BOQ_USAGE',
        `Expected a budget such as 90min, 5000episodes or 2.5usd, got "${part.trim()}".`,
      );
    }
    limits[unit] = value;
  }
  return limits;
}

/** Keeps account over all sittings of a loop. */
export class LoopBudget {
  readonly #limits: LoopLimits;
  readonly #clock: () => number;
  readonly #started: number;
  readonly #spending: Budget;
  /** Of earlier sittings. */
  readonly #minutesBefore: number;
  #usd: number;
  #episodes = 0;

  /**
   * @param before minutes and dollars of earlier sittings
   * @param clock milliseconds, for tests
   */
  constructor(
    limits: LoopLimits,
    before: { minutes: number; usd: number } = { minutes: 0, usd: 0 },
    options: { prices?: Readonly<Record<string, Price>>; clock?: () => number } = {},
  ) {
    this.#limits = limits;
    this.#clock = options.clock ?? (() => performance.now());
    this.#started = this.#clock();
    this.#minutesBefore = before.minutes;
    this.#usd = before.usd;
    this.#spending = new Budget({
      ...(limits.usd === undefined ? {} : { maxUsd: Number.POSITIVE_INFINITY }),
      ...(limits.tokens === undefined ? {} : { maxTokens: limits.tokens }),
      ...(limits.calls === undefined ? {} : { maxCalls: limits.calls }),
      ...(options.prices ? { prices: options.prices } : {}),
    });
  }

  /** Dollars so far, those of earlier sittings included. */
  get usd(): number {
    return this.#usd + this.#spending.spent.usd;
  }

  get minutes(): number {
    return this.#minutesBefore + (this.#clock() - this.#started) / 60_000;
  }

  /** @throws BOQ_USAGE where dollars are limited and a model has no price */
  add(usage: readonly Usage[]): void {
    for (const one of usage) this.#spending.add(one);
  }

  /** Dollars that another sitting spent on what this one found on the disk. */
  addUsd(usd: number): void {
    this.#usd += usd;
  }

  /** Training episodes that exist. */
  setEpisodes(episodes: number): void {
    this.#episodes = episodes;
  }

  /** Training episodes that may still be begun; Infinity without a limit on them. */
  get episodesLeft(): number {
    const { episodes = Number.POSITIVE_INFINITY } = this.#limits;
    return Math.max(0, episodes - this.#episodes);
  }

  /** Which limit is met, in words; null while there is something left. */
  exhausted(): string | null {
    const { minutes, episodes, usd } = this.#limits;
    if (episodes !== undefined && this.#episodes >= episodes)
      return `${this.#episodes} of ${episodes} episodes are played`;
    if (minutes !== undefined && this.minutes >= minutes)
      return `${this.minutes.toFixed(1)} of ${minutes} minutes are used`;
    if (usd !== undefined && this.usd >= usd) return `${this.usd.toFixed(4)} of ${usd} dollars are used`;
    return this.#spending.exhausted();
  }
}
