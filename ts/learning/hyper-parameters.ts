/**
 * Every setting of IQL training, in one table: commands take their options from it, the model card its explanations.
 * Names, types and meaning are those of native/iql/config.h, which checks the values again and resolves what depends
 * on the data. A setting that is left out has the preset's value.
 */
import { BoqError } from '../core/errors.js';
import type { NativeTrainConfig } from '../native/surface.js';

type Value = number | string | boolean | number[];

/** A hyper-parameter of training: its name, kind, range and meaning. */
export interface HyperParameter {
  /** The key in config.json. */
  name: string;
  kind: 'integer' | 'number' | 'boolean' | 'integers' | readonly string[];
  /** Bounds of numbers, both allowed. */
  low?: number;
  high?: number;
  help: string;
}

/** All hyper-parameters, as the command line and the documentation list them. */
export const hyperParameters: readonly HyperParameter[] = [
  { name: 'seed', kind: 'integer', low: 0, help: 'of initialisation, sampling, dropout and shuffling' },
  { name: 'steps', kind: 'integer', low: 1, help: 'gradient steps; by data where not given, paper: 50,000' },
  { name: 'batchSize', kind: 'integer', low: 1, help: 'transitions in one step' },
  { name: 'gamma', kind: 'number', low: 0, high: 1, help: 'discount of one step' },
  {
    name: 'tau',
    kind: 'number',
    low: 0.001,
    high: 0.999,
    help: 'expectile of V; by the success rate where not given',
  },
  {
    name: 'qTarget',
    kind: ['td', 'sarsa', 'monte-carlo', 'outcome'],
    help: 'what Q is regressed on; td: IQL, monte-carlo: the discounted return',
  },
  { name: 'valueLoss', kind: ['mse', 'bce', 'hl-gauss'], help: 'loss of Q' },
  { name: 'bins', kind: 'integer', low: 5, high: 1001, help: 'of hl-gauss' },
  {
    name: 'bootstrapTimeouts',
    kind: 'boolean',
    help: 'treat a limit as the end of the record, not of the task',
  },
  {
    name: 'conservative',
    kind: 'number',
    low: 0,
    high: 1000,
    help: 'penalty on candidates not executed; 0: none',
  },
  {
    name: 'ranking',
    kind: 'number',
    low: 0,
    high: 1000,
    help: 'loss between actions tried in one state; 0: none',
  },
  { name: 'targetPeriod', kind: 'integer', low: 1, help: 'steps between two copies of Q into its target' },
  { name: 'polyak', kind: 'number', low: 0, high: 1, help: 'rate of a moving-average target; 0: copies' },
  { name: 'heads', kind: 'integer', low: 1, high: 64, help: 'independent Q networks; several give a spread' },
  { name: 'headAggregate', kind: ['min', 'mean'], help: "how V's target joins the heads" },
  {
    name: 'headShare',
    kind: 'number',
    low: 0.01,
    high: 1,
    help: 'share of the transitions that each head sees',
  },
  { name: 'projection', kind: 'integer', low: 1, high: 65_536, help: 'width of the three input projections' },
  {
    name: 'hidden',
    kind: 'integers',
    low: 1,
    high: 65_536,
    help: 'widths of the hidden layers, with commas',
  },
  { name: 'dropout', kind: 'number', low: 0, high: 0.95, help: 'after each hidden layer, in training' },
  { name: 'useState', kind: 'boolean', help: 'let the networks see the state' },
  { name: 'useAction', kind: 'boolean', help: 'let Q see the action' },
  { name: 'useTask', kind: 'boolean', help: 'let the networks see the task' },
  { name: 'useMatch', kind: 'boolean', help: 'let Q also see the product of action and task' },
  { name: 'learningRate', kind: 'number', low: 0, high: 1, help: 'of both networks, at the start' },
  { name: 'schedule', kind: ['cosine', 'constant'], help: 'of the learning rate over the run' },
  { name: 'optimizer', kind: ['adam', 'adamw'], help: 'adam: weight decay as L2 in the gradient' },
  { name: 'weightDecay', kind: 'number', low: 0, high: 1, help: 'strength of the weight decay' },
  { name: 'beta1', kind: 'number', low: 0, high: 0.9999999, help: 'of Adam' },
  { name: 'beta2', kind: 'number', low: 0, high: 0.9999999, help: 'of Adam' },
  { name: 'epsilon', kind: 'number', low: 1e-30, high: 1, help: 'of Adam' },
  {
    name: 'gradientClip',
    kind: 'number',
    low: 0,
    help: 'largest gradient norm of each network; 0: no limit',
  },
  { name: 'standardise', kind: 'boolean', help: 'zero mean and unit variance of every input dimension' },
  { name: 'standardiseClip', kind: 'number', low: 0, help: 'largest standardised value; 0: no limit' },
  {
    name: 'validationFraction',
    kind: 'number',
    low: 0,
    high: 0.9,
    help: 'share of the episodes kept out of training',
  },
  { name: 'shuffleRewards', kind: 'boolean', help: 'a control: outcomes dealt out anew among episodes' },
  {
    name: 'allowSingleOutcome',
    kind: 'boolean',
    help: 'train although every episode succeeded, or none did',
  },
  { name: 'precision', kind: ['auto', 'float32', 'bfloat16'], help: 'of matrix products' },
  { name: 'checkpointEvery', kind: 'integer', low: 1, help: 'steps between checkpoints' },
  {
    name: 'evaluateEvery',
    kind: 'integer',
    low: 0,
    help: 'steps between measurements on the validation split',
  },
  {
    name: 'regressor',
    kind: 'boolean',
    help: 'at the end, compare Q with a Monte-Carlo regressor on the same features',
  },
  { name: 'keepCheckpoint', kind: 'boolean', help: 'keep checkpoint/ after a finished run' },
];

/** `default` is what measurement recommends, `paper` the paper to the letter; docs/method.md has the differences. */
export const presets = ['default', 'paper'] as const;
/** A named set of hyper-parameters. */
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
