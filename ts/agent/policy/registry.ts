/** Policies by name: `page`, `page-sampled`, `vlm`, and what they are set to. */
import { BoqError } from '../../core/errors.js';
import { nearestNames } from '../../core/nearest.js';
import type { ActionRegistry } from '../actions/registry.js';
import type { Proposer } from '../types.js';
import { openClient, type VlmSetup } from '../vlm/index.js';
import { PagePolicy } from './page.js';
import { VlmPolicy, type VlmPolicyOptions } from './vlm-policy.js';

/** Settings that policies take by name. */
export interface PolicySettings {
  /** Of policies that sample; their own default where left out. */
  temperature?: number;
  /** What may be offered; the paper's eight actions where left out. */
  actions?: ActionRegistry;
  /** Names of values that are typed as `{{name}}` and never shown. */
  secretNames?: readonly string[];
  /** Where the model is that `vlm` asks, and how; the environment says so where left out. */
  vlm?: VlmChoice;
}

/** Models of an agent: where they are, and how its policy asks. */
export type VlmChoice = VlmSetup &
  Pick<VlmPolicyOptions, 'proposals' | 'screenshots' | 'elements' | 'repairs'>;

const policies: Readonly<Record<string, (settings: PolicySettings) => Proposer>> = {
  page: (settings) => new PagePolicy({ order: 'best-first', ...temperatureOf(settings) }),
  'page-sampled': (settings) => new PagePolicy({ order: 'sampled', ...temperatureOf(settings) }),
  vlm: ({ vlm, ...settings }) => new VlmPolicy({ ...vlm, ...settings, client: openClient('policy', vlm) }),
};

function temperatureOf({ temperature }: PolicySettings): Pick<PolicySettings, 'temperature'> {
  return temperature === undefined ? {} : { temperature };
}

/** Names that createPolicy knows. */
export const policyNames: readonly string[] = Object.keys(policies);

/** @throws BOQ_USAGE with the nearest name, BOQ_VLM_ENDPOINT, BOQ_VLM_KEY */
export function createPolicy(name: string, settings: PolicySettings = {}): Proposer {
  if (!Object.hasOwn(policies, name)) {
    throw new BoqError(
      'BOQ_USAGE',
      `Unknown policy "${name}": did you mean ${nearestNames(name, policyNames)[0]}?`,
    );
  }
  return policies[name]!(settings);
}
