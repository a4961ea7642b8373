/** Several localizers in turn: the next is asked where one finds nothing. */
import type { Localizer, Observation } from '../types.js';

export class FallbackLocalizer implements Localizer {
  readonly name: string;
  readonly #localizers: readonly Localizer[];

  /** @param localizers at least one, the preferred first */
  constructor(localizers: readonly Localizer[]) {
    this.#localizers = localizers;
    this.name = localizers.map(({ name }) => name).join(', else ');
  }

  /** A miss is passed on; a localizer that cannot be asked is an error, and not covered up by the next. */
  async locate(
    description: string,
    observation: Observation,
    signal?: AbortSignal,
  ): ReturnType<Localizer['locate']> {
    const usage = [];
    const messages = [];
    for (const localizer of this.#localizers) {
      const { usage: spent = [], ...found } = await localizer.locate(description, observation, signal);
      usage.push(...spent);
      if (found.found) return { ...found, usage };
      messages.push(found.message);
    }
    return { found: false, message: messages.join('; '), usage };
  }
}
