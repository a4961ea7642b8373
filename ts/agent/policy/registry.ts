/** Policies by name: `page`, `page-sampled`, and what they are set to. */
import { BoqError } from '../../core/errors.js';
import { nearestNames } from '../../core/nearest.js';
import type { ActionRegistry } from '../actions/registry.js';
import type { Proposer } from '../types.js';
import { PagePolicy } from './page.js';

/** Settings that policies take by name. */
export interface PolicySettings {
  /** Of policies that sample; their own default where left out. */
  temperature?: number;
  /** What may be offered; the paper's eight actions where left out. */
  actions?: ActionRegistry;
  /** Names of values that are typed as `{{name}}` and never shown. */
  secretNames?: readonly string[];
}

const policies: Readonly<Record<string, (settings: PolicySettings) => Proposer>> = {
  page: (settings) => new PagePolicy({ order: 'best-first', ...temperatureOf(settings) }),
  'page-sampled': (settings) => new PagePolicy({ order: 'sampled', ...temperatureOf(settings) }),
};

function temperatureOf({ temperature }: PolicySettings): Pick<PolicySettings, 'temperature'> {
  return temperature === undefined ? {} : { temperature };
}

/** Names that createPolicy knows. */
export const policyNames: readonly string[] = Object.keys(policies);

/** @throws BOQ_USAGE with the nearest name */
export function createPolicy(name: string, settings: PolicySettings = {}): Proposer {
  if (!Object.hasOwn(policies, name)) {
    throw new BoqError(
      'BOQ_USAGE',
      `Unknown policy "${name}": did you mean ${nearestNames(name, policyNames)[0]}?`,
    );
  }
  return policies[name]!(settings);
}
