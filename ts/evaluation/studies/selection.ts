/**
 * Selection beyond argmax, after the loop. One confirmation, declared here before its test seeds were played; the
 * other studies explore, on validation seeds, and stand for nothing by themselves.
 */
import type { Comparison, Experiment, Variant } from '../experiment.js';
import type { LoopPlan } from '../loop/plan.js';
import type { PolicyChoice } from '../stage.js';
import { halfWidth } from './half-width.js';

/** What is to be recommended; its margin is chosen on validation seeds. */
const recommended = 'best-of-q@margin=auto';

const monteCarlo: Variant = {
  name: 'monte-carlo',
  config: { qTarget: 'monte-carlo' },
  selectors: ['best-of-q'],
};

const heads: Variant = {
  name: 'heads',
  config: { heads: 5, headShare: 0.8 },
  selectors: ['lower-bound@k=1', 'lower-bound@k=1&margin=auto'],
};

const common = {
  benchmark: 'miniwob',
  n: 3,
  validation: { tasks: ['@loop-train'], seeds: { from: 10_000, to: 10_002 } },
  controls: { shuffled: [recommended], constant: ['best-of-q'] },
} as const;

/**
 * Three loops, each of its own 6,552 episodes. They exploit by the paper's rule: a margin would keep them from trying
 * just those candidates that Q overrates, and so from learning better. One repeat: the policy and the rule draw nothing,
 * so a second one would play the same again.
 */
const loops: Experiment['training'] = {
  tasks: ['@loop-train'],
  repeats: 1,
  selector: 'epsilon-greedy@epsilon=0.5',
  loop: { explore: { runs: 5 }, cycles: 4, exploit: { runs: 2, selector: 'best-of-q' } },
  config: halfWidth,
  draws: [0, 1, 2].map((index) => ({
    seed: 11 + index,
    seeds: { from: 1000 * index, to: 1000 * index + 7 },
  })),
};

const questions: Experiment['questions'] = [
  { part: 'seeds', tasks: ['@loop-train'], seeds: { from: 22_000, to: 22_005 } },
  { part: 'tasks', tasks: ['@loop-unseen'], seeds: { from: 22_000, to: 22_005 } },
];

/** The comparisons that are tested, and no others. */
const confirmation: readonly Comparison[] = [
  { part: 'seeds', label: recommended, against: 'prompting' },
  { part: 'seeds', label: 'best-of-q', against: 'prompting' },
  { part: 'seeds', label: 'best-of-q', against: 'best-of-q, monte-carlo' },
  { part: 'tasks', label: recommended, against: 'prompting' },
  { part: 'tasks', label: 'best-of-q', against: 'prompting' },
];

/** Against the policy that puts its own best candidate first. */
export const page: Experiment = {
  ...common,
  policy: 'page',
  training: loops,
  questions,
  selectors: ['prompting', 'best-of-q', recommended],
  variants: [monteCarlo],
  references: [
    { policy: 'page', refit: 'filtered' },
    { policy: 'page', refit: 'advantage' },
  ],
  confirmation,
};

/** Exploring studies share the episodes and the model of the confirmation's first loop. */
const firstLoop: Experiment['training'] = {
  ...loops,
  draws: loops.draws.slice(0, 1),
  sharedAs: 'selection-1',
};

const oneTraining: Experiment['training'] = {
  tasks: ['@loop-train'],
  repeats: 2,
  selector: 'epsilon-greedy@epsilon=0.5',
  draws: [{ seed: 21, seeds: { from: 5000, to: 5014 } }],
  config: halfWidth,
};

const explored: Experiment['questions'] = [
  { part: 'seeds', tasks: ['@loop-train'], seeds: { from: 11_000, to: 11_002 } },
  { part: 'tasks', tasks: ['@loop-unseen'], seeds: { from: 11_000, to: 11_004 } },
];

function exploration(changes: Partial<Experiment>): Experiment {
  return {
    ...common,
    policy: 'page',
    training: firstLoop,
    questions: explored,
    selectors: ['prompting', 'best-of-q', recommended],
    ...changes,
    controls: { shuffled: [], constant: [] },
    references: changes.references ?? [],
  };
}

/** Where trainings are compared: a margin that none of them chose. */
const fixed = ['prompting', 'best-of-q', 'best-of-q@margin=0.3'];

/** Every rule around the selector, at its usual setting. */
export const rules = exploration({
  selectors: [
    'prompting',
    recommended,
    'best-of-q@margin=auto+calibrated',
    'best-of-q@margin=auto&rescue=0.1',
    ...['no-placeholders', 'union', 'page-derived', 'ask-again', 'backtrack'].map(
      (rule) => `best-of-q@margin=0.3+${rule}`,
    ),
    'best-of-q@margin=0.3+trajectories',
    'epsilon-greedy@epsilon=0.3+trajectories',
  ],
});

/** What could embarrass the method, on the same episodes. */
export const baselines = exploration({
  selectors: [
    ...['prompting', 'first', 'random', 'picker', 'majority+samples@k=5', 'best-of-q', recommended],
    'epsilon-greedy@epsilon=0.3+trajectories',
    'first+retry',
  ],
  variants: [monteCarlo],
  references: [
    { policy: 'page', refit: 'filtered' },
    { policy: 'page', refit: 'advantage' },
  ],
});

/** Search takes twenty times the actions, so it is played on fewer instances. */
export const search = exploration({
  selectors: ['prompting', recommended, 'first+search@depth=1&width=3&budget=3'],
  questions: [
    { part: 'seeds', tasks: ['@loop-train'], seeds: { from: 11_003, to: 11_003 } },
    { part: 'tasks', tasks: ['@loop-unseen'], seeds: { from: 11_005, to: 11_006 } },
  ],
});

/** What training can do about candidates that were rarely tried, and about tasks that it never saw. */
export const trainings = exploration({
  variants: [
    monteCarlo,
    heads,
    { name: 'conservative', config: { conservative: 0.1 }, selectors: ['best-of-q', recommended] },
    { name: 'ranking', config: { ranking: 0.1 }, selectors: ['best-of-q', recommended] },
    { name: 'no-state', config: { useState: false }, selectors: ['best-of-q', recommended] },
    { name: 'no-task', config: { useTask: false }, selectors: ['best-of-q', recommended] },
  ],
});

/**
 * Trees of equal cost and different shape, and the same number of actions without a tree: 40 an instance are about 15
 * plain episodes.
 */
function explorer(change: Partial<Experiment['training']>, variants: readonly Variant[] = []): Experiment {
  return exploration({
    selectors: fixed,
    variants,
    training: {
      ...oneTraining,
      draws: [{ seed: 31, seeds: { from: 6000, to: 6002 } }],
      config: { ...halfWidth, ranking: 0.1 },
      ...change,
    },
  });
}
const tree = (width: number, depth: number): Experiment =>
  explorer({ repeats: 1, tree: { width, depth, rollouts: 12, actions: 40, irreversible: true } }, [
    { name: 'backed-up', config: {}, backup: 'max', selectors: fixed.slice(1) },
  ]);
export const treeWide = tree(3, 2);
export const treeDeep = tree(2, 4);
export const treeChain = tree(2, 10);
export const treeEpsilon = explorer({ repeats: 15 });

/** Q learned from one policy's episodes, used with another's candidates. Both are stand-ins. */
function transfer(from: PolicyChoice): Experiment {
  return exploration({ selectors: fixed, training: { ...oneTraining, policy: from } });
}
export const transferNone = transfer({ policy: 'page' });
export const transferCold = transfer({ policy: 'page-sampled', temperature: 0.5 });
export const transferWarm = transfer({ policy: 'page-sampled', temperature: 2 });

/** The episodes of `transferNone`, with every instruction in other words. */
export const reworded = exploration({
  selectors: fixed,
  training: { ...oneTraining, benchmark: 'miniwob+reworded' },
});

/** Loops of the same 1,638 episodes that differ in one switch. */
function loop(change: Partial<Pick<LoopPlan, 'n' | 'curriculum' | 'warmStart'>>): Experiment {
  return exploration({
    selectors: fixed,
    validation: { tasks: ['@loop-train'], seeds: { from: 10_000, to: 10_000 } },
    training: {
      ...loops,
      draws: [{ seed: 41, seeds: { from: 7000, to: 7001 } }],
      loop: { ...loops.loop!, ...change },
    },
  });
}
export const loopPlain = loop({});
export const loopCurriculum = loop({ curriculum: 0.5 });
export const loopMixed = loop({ n: [2, 3, 5] });
export const loopWarm = loop({ warmStart: true });
