import type { Experiment } from '../experiment.js';
import { halfWidth } from './half-width.js';

/** The demonstration: one training on 1,800 episodes, measured on other seeds and on other tasks. */
export function demo(seed: number): Experiment {
  return {
    benchmark: 'miniwob',
    policy: 'page',
    n: 3,
    training: {
      tasks: ['@demo-train'],
      repeats: 2,
      selector: 'epsilon-greedy@epsilon=0.5',
      draws: [{ seed, seeds: { from: 0, to: 29 } }],
      config: halfWidth,
    },
    validation: {
      tasks: ['@demo-train'],
      seeds: { from: 10_000, to: 10_004 },
      grid: [0, 0.05, 0.1, 0.2, 0.3, 0.5, 1],
    },
    questions: [
      { part: 'seeds', tasks: ['@demo-train'], seeds: { from: 20_000, to: 20_004 } },
      { part: 'tasks', tasks: ['@demo-unseen'], seeds: { from: 20_000, to: 20_002 } },
    ],
    selectors: ['prompting', 'random', 'best-of-q', 'best-of-q@margin=auto'],
    controls: { shuffled: ['best-of-q@margin=auto'], constant: ['best-of-q'] },
    references: [{ policy: 'page-sampled', temperature: 0.5 }],
  };
}
