/**
 * Q labels by backup (after QLASS, arXiv 2502.02584): episodes that share states and actions, as those of tree
 * exploration do, make a graph, and each action tried in it gets a value from what was reached behind it. All labels lie
 * on one scale, [0, 1], whatever the tree.
 */

/** `max`: the best that was reached. `mean`: the mean of all that was. `padded`: as max, with short ways filled up. */
export const backups = ['max', 'mean', 'padded'] as const;
export type Backup = (typeof backups)[number];

/** One transition: rows of state, action and task, and what came of it. */
export interface LabelStep {
  state: number;
  action: number;
  task: number;
  reward: number;
  isLast: boolean;
}

/** One state and action that was tried, with its label. */
export interface LabelledAction {
  state: number;
  action: number;
  task: number;
  /** In [0, 1]. */
  label: number;
  /** Transitions behind it. */
  visits: number;
}

export interface BackupOptions {
  backup: Backup;
  /** Discount of one step; that of the training that the labels are for. */
  gamma: number;
  /** padded only: actions that a way is filled up to. Default 5, as in QLASS. */
  height?: number;
}

interface Edge {
  step: LabelStep;
  visits: number;
  /** Rewards of episodes that ended with it. */
  ends: number[];
  /** Discounted returns of all visits. */
  returns: number[];
  next: Set<string>;
}

/** @param episodes in any order, each with its steps in order */
export function labelActions(
  episodes: readonly (readonly LabelStep[])[],
  options: BackupOptions,
): LabelledAction[] {
  const edges = edgesOf(episodes, options.gamma);
  const values = new Map<string, number>();
  return [...edges].map(([key, { step, visits }]) => ({
    state: step.state,
    action: step.action,
    task: step.task,
    label: valueBehind(key, edges, options, values, 0),
    visits,
  }));
}

function edgesOf(episodes: readonly (readonly LabelStep[])[], gamma: number): Map<string, Edge> {
  const edges = new Map<string, Edge>();
  for (const steps of episodes) {
    let following = 0;
    let after: string | null = null;
    for (const step of [...steps].reverse()) {
      const key = JSON.stringify([step.state, step.action, step.task]);
      const edge = edges.get(key) ?? { step, visits: 0, ends: [], returns: [], next: new Set<string>() };
      edges.set(key, edge);
      following = step.reward + (step.isLast ? 0 : gamma * following);
      edge.visits++;
      edge.returns.push(following);
      if (step.isLast) edge.ends.push(step.reward);
      else if (after !== null) edge.next.add(after);
      after = key;
    }
  }
  return edges;
}

/** Values behind an edge. A state that comes back to itself is cut where it closes: no way gets better by a circle. */
function valueBehind(
  key: string,
  edges: ReadonlyMap<string, Edge>,
  options: BackupOptions,
  known: Map<string, number>,
  depth: number,
): number {
  const found = known.get(key);
  if (found !== undefined) return found;
  const { backup, gamma, height = 5 } = options;
  const { ends, returns, next } = edges.get(key)!;
  if (backup === 'mean') {
    const label = clamp(mean(returns));
    known.set(key, label);
    return label;
  }
  known.set(key, 0);
  const behind = [...next].map((child) => gamma * valueBehind(child, edges, options, known, depth + 1));
  // A way that ends early has had its reward ever since: without this a short way would be worth less.
  const full = (1 - gamma ** height) / (1 - gamma);
  const share =
    backup === 'padded' && gamma < 1 ? (1 - gamma ** Math.max(1, height - depth)) / (1 - gamma) / full : 1;
  const own = ends.length > 0 ? [mean(ends) * share] : [];
  const label = clamp(Math.max(0, ...own, ...behind));
  known.set(key, label);
  return label;
}

function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}

function clamp(value: number): number {
  return Math.min(1, Math.max(0, value));
}
