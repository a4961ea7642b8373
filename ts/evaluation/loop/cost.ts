/** What the episodes of a run cost in dollars, read from their steps. */
import { defaultPrices, type Price, priceOf } from '../../agent/budget.js';
import { isBoqError } from '../../core/errors.js';
import { FolderRun } from '../../store/run.js';

/** Dollars by the price table; models without a price count nothing. 0 where there is no run yet. */
export async function costOf(path: string, prices: Readonly<Record<string, Price>> = {}): Promise<number> {
  let run: FolderRun;
  try {
    run = await FolderRun.open(path);
  } catch (error) {
    if (isBoqError(error, 'BOQ_FILE_NOT_FOUND')) return 0;
    throw error;
  }
  const known = { ...defaultPrices, ...prices };
  let usd = 0;
  for await (const { steps } of run.episodes()) {
    for (const { usage } of steps) {
      for (const { model, inputTokens, outputTokens } of usage) {
        const price = priceOf(model, known);
        if (price) usd += (inputTokens * price.input + outputTokens * price.output) / 1e6;
      }
    }
  }
  return usd;
}
