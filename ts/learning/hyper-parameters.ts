/**
 * Every setting of IQL training, in one table: commands take their options from it, the model card its explanations.
 * Names, types and meaning are those of native/iql/config.h, which checks the values again and resolves what depends
 * on the data. A setting that is left out has the preset's value.
 */
import { BoqError } from '../core/errors.js';
import type { NativeTrainConfig } from '../native/surface.js';

type Value = number | string | boolean | number[];

export interface HyperParameter {
  /** The key in config.json. */
  name: string;
  kind: 'integer' | 'number' | 'boolean' | 'integers' | readonly string[];
  /** Bounds of numbers, both allowed. */
  low?: number;
  high?: number;
  help: string;
}

export const hyperParameters: readonly HyperParameter[] = [
  {
    name: 'steps',
    kind: 'integer',
    low: 1,
    help: 'gradient steps (0.. by data: about 20 passes, at least 1,500; paper: 50,000)',
  },
  { name: 'batchSize', kind: 'integer', low: 1, help: 'transitions in one step' },
  { name: 'gamma', kind: 'number', low: 0, high: 1, help: 'discount of one step' },
  {
    name: 'tau',
    kind: 'number',
    low: 0,
    high: 1,
    help: 'expectile of V; by the success rate of the data where not given',
  },
  { name: 'learningRate', kind: 'number', low: 0, high: 1, help: 'of Adam, at the start' },
  { name: 'schedule', kind: ['cosine', 'constant'], help: 'of the learning rate over the run' },
  { name: 'optimizer', kind: ['adam', 'adamw'], help: 'adam: weight decay as L2 in the gradient' },
  { name: 'weightDecay', kind: 'number', low: 0, high: 1, help: 'strength of the weight decay' },
  {
    name: 'gradientClip',
    kind: 'number',
    low: 0,
    help: 'largest gradient norm of each network; 0: no limit',
  },
  { name: 'dropout', kind: 'number', low: 0, high: 1, help: 'after each hidden layer, in training' },
  { name: 'targetPeriod', kind: 'integer', low: 1, help: 'steps between two copies of Q into its target' },
  {
    name: 'polyak',
    kind: 'number',
    low: 0,
    high: 1,
    help: 'moving-average rate of the target instead of copies; 0: copies',
  },
  { name: 'standardise', kind: 'boolean', help: 'zero mean and unit variance of every input dimension' },
  { name: 'standardiseClip', kind: 'number', low: 0, help: 'largest standardised value' },
  {
    name: 'heads',
    kind: 'integer',
    low: 1,
    high: 64,
    help: 'independent Q networks; more than one gives a spread',
  },
  { name: 'projection', kind: 'integer', low: 1, help: 'width of the three input projections' },
  { name: 'hidden', kind: 'integers', low: 1, help: 'widths of the hidden layers' },
  {
    name: 'validationFraction',
    kind: 'number',
    low: 0,
    high: 0.9,
    help: 'share of tasks and seeds kept out of training',
  },
  {
    name: 'bootstrapTimeouts',
    kind: 'boolean',
    help: 'treat a limit as the end of the record, not of the task',
  },
  { name: 'shuffleRewards', kind: 'boolean', help: 'a control: outcomes dealt out anew among episodes' },
  { name: 'seed', kind: 'integer', low: 0, help: 'of initialisation, sampling and dropout' },
];

export const presets = ['default', 'paper'] as const;
export type Preset = (typeof presets)[number];

/**
 * Reads one value as a command line gives it.
 *
 * @throws BoqError BOQ_USAGE
 */
export function parseHyperParameter(parameter: HyperParameter, text: string): Value {
  const { name, kind, low = Number.NEGATIVE_INFINITY, high = Number.POSITIVE_INFINITY } = parameter;
  const wrong = (expected: string): BoqError =>
    new BoqError('BOQ_USAGE', `${name} must be ${expected}, not ${JSON.stringify(text)}`);
  if (typeof kind === 'object') {
    if (!kind.includes(text)) throw wrong(`one of ${kind.join(', ')}`);
    return text;
  }
  if (kind === 'boolean') {
    if (text !== 'true' && text !== 'false') throw wrong('true or false');
    return text === 'true';
  }
  const numbers = (kind === 'integers' ? text.split(',') : [text]).map((part) => {
    const value = Number(part);
    const isWhole = kind === 'number' || Number.isSafeInteger(value);
    if (part.trim() === '' || !Number.isFinite(value) || !isWhole || value < low || value > high) {
      throw wrong(`${kind === 'number' ? 'a number' : 'whole'} ${range(low, high)}`);
    }
    return value;
  });
  return kind === 'integers' ? numbers : (numbers[0] as number);
}

function range(low: number, high: number): string {
  if (high === Number.POSITIVE_INFINITY) return `of at least ${low}`;
  return `from ${low} to ${high}`;
}

/** What goes to the native side: the preset's name and what differs from it. */
export function trainConfig(preset: Preset, overrides: NativeTrainConfig): NativeTrainConfig {
  const known = new Set(hyperParameters.map(({ name }) => name));
  for (const name of Object.keys(overrides)) {
    if (!known.has(name)) throw new BoqError('BOQ_CONFIG_INVALID', `there is no hyper-parameter "${name}"`);
  }
  return { preset, ...overrides };
}
