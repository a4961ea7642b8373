import type { Experiment } from '../experiment.js';
import type { PolicyChoice } from '../stage.js';

/**
 * Does selection by Q gain over the policy's own choice? Three independent trainings (episodes and networks), each
 * paired with the policy on 17 test seeds of each training task (1,530 pairs) and 5 of each unseen task (330 pairs).
 * The controls are those of the demonstration.
 */
function selectionGain(policy: PolicyChoice): Experiment {
  return {
    ...policy,
    benchmark: 'miniwob',
    n: 3,
    training: {
      tasks: ['@demo-train'],
      repeats: 2,
      selector: 'epsilon-greedy@epsilon=0.5',
      draws: [0, 1, 2].map((index) => ({
        seed: index + 1,
        seeds: { from: 100 * index, to: 100 * index + 29 },
      })),
    },
    validation: { tasks: ['@demo-train'], seeds: { from: 10_000, to: 10_004 } },
    questions: [
      { part: 'seeds', tasks: ['@demo-train'], seeds: { from: 21_000, to: 21_016 } },
      { part: 'tasks', tasks: ['@demo-unseen'], seeds: { from: 21_000, to: 21_004 } },
    ],
    selectors: ['prompting', 'best-of-q', 'best-of-q@margin=auto'],
    controls: { shuffled: [], constant: [] },
    references: [],
  };
}

/** Against the policy that puts its own best candidate first. */
export const page = selectionGain({ policy: 'page' });

/** Against the policy that draws its candidates, as a language model that samples does. */
export const pageSampled = selectionGain({ policy: 'page-sampled', temperature: 0.5 });
