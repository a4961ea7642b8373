/** Localizers by name: `page`, or a model's form; several, separated by commas, are asked in turn. */
import { BoqError } from '../../core/errors.js';
import { nearestNames } from '../../core/nearest.js';
import type { Localizer } from '../types.js';
import { openClient, type VlmSetup } from '../vlm/index.js';
import { FallbackLocalizer } from './fallback.js';
import { PageLocalizer } from './page.js';
import { groundingNames, VlmLocalizer } from './vlm-localizer.js';

/** Names that createLocalizer knows. */
export const localizerNames: readonly string[] = ['page', ...groundingNames];

/**
 * @param names e.g. `page`, `holo1.5`, or `holo1.5,page`
 * @param setup where the model is, for those that ask one
 * @throws BOQ_USAGE with the nearest name, BOQ_VLM_ENDPOINT, BOQ_VLM_KEY
 */
export function createLocalizer(names: string, setup: VlmSetup = {}): Localizer {
  const localizers = names.split(',').map((text) => {
    const name = text.trim();
    if (!localizerNames.includes(name)) {
      const [nearest] = nearestNames(name, localizerNames);
      throw new BoqError('BOQ_USAGE', `Unknown localizer "${name}": did you mean ${nearest}?`);
    }
    return name === 'page' ? new PageLocalizer() : new VlmLocalizer(openClient('localizer', setup), name);
  });
  return localizers.length === 1 ? localizers[0]! : new FallbackLocalizer(localizers);
}
