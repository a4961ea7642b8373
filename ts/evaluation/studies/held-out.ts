/**
 * Tasks that were never trained on, with more of them than one split holds: trees on 98 tasks in three folds, each fold
 * played with models of the other two. Declared before its test seeds were played.
 */
import type { Comparison, Experiment } from '../experiment.js';
import { halfWidth } from './half-width.js';

/** Chosen on validation seeds of `@loop-unseen`, trained on the other two. */
const chosen = 'best-of-q@margin=0.3';

/** The two folds that nothing was chosen on come first: no model was ever asked about them without having seen them. */
const questions: Experiment['questions'] = [
  { part: 'new', tasks: ['@loop-text', '@loop-figures'], seeds: { from: 23_000, to: 23_004 } },
  { part: 'looked-at', tasks: ['@loop-unseen'], seeds: { from: 23_000, to: 23_004 } },
];

const confirmation: readonly Comparison[] = [
  { part: 'new', label: chosen, against: 'prompting' },
  { part: 'new', label: 'best-of-q', against: 'prompting' },
  { part: 'looked-at', label: chosen, against: 'prompting' },
];

export const heldOut: Experiment = {
  benchmark: 'miniwob',
  policy: 'page',
  n: 3,
  training: {
    tasks: ['@loop-text', '@loop-figures', '@loop-unseen'],
    folds: true,
    repeats: 1,
    selector: 'epsilon-greedy@epsilon=0.5',
    tree: { width: 3, depth: 2, rollouts: 12, actions: 40, irreversible: true },
    backup: 'max',
    config: { ...halfWidth, ranking: 0.1 },
    draws: [0, 1].map((index) => ({
      seed: 51 + index,
      seeds: { from: 8000 + 10 * index, to: 8002 + 10 * index },
    })),
  },
  validation: { tasks: ['@loop-unseen'], seeds: { from: 10_000, to: 10_002 } },
  questions,
  selectors: ['prompting', 'best-of-q', chosen],
  controls: { shuffled: [chosen], constant: ['best-of-q'] },
  references: [],
  confirmation,
};
