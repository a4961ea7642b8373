/** The exploration tree of one task instance, as its roll-outs show it, and which branch is tried next. */
import { actionKey } from '../../agent/methods/method.js';
import type { ReplayStep } from '../../agent/methods/replay.js';
import type { Action, Candidate, StepRecord } from '../../store/types.js';

/** How a tree grows. */
export interface TreeShape {
  /** Actions tried in one state, the roll-out's own included. */
  width: number;
  /** States from the start in which others are tried; 1: the first state alone. */
  depth: number;
  /** Episodes of one task instance. */
  rollouts: number;
  /** Actions carried out for one task instance, replays included; Infinity for no limit. */
  actions: number;
  /** In which roll-outs branches are opened beside the first one: pruning by outcome, or in no other. */
  expand: 'all' | 'success' | 'failure' | 'first';
  /** True where actions that look as if they could not be undone are tried as branches, too. */
  irreversible: boolean;
}

/** One roll-out as recorded. */
export interface Rollout {
  steps: readonly StepRecord[];
  success: boolean;
  /** Actions carried out. */
  actions: number;
}

interface Node {
  /** From the start to this state. */
  path: ReplayStep[];
  candidates: readonly Candidate[];
  signature: string;
  /** Keys of the actions tried here, in order. */
  tried: Set<string>;
  /** Replays that did not come out here. */
  lost: number;
  isOpen: boolean;
}

/** Replays of one state that may fail before it counts as not reproducible. */
const lossesAllowed = 2;

const finalWords =
  /\b(submit|buy|purchase|order|pay|checkout|book|reserve|delete|remove|discard|send|post|publish|share|confirm|transfer|unsubscribe|cancel|sign|log ?out)\b/i;

/** Whether an action looks as if it could not be undone: by its words, or because it submits. */
export function looksFinal(action: Action): boolean {
  if (action.type === 'answer' || action['submit'] === true) return true;
  return action.type === 'click' && finalWords.test(String(action['element'] ?? ''));
}

/**
 * The branch to try next: the steps to do again and, as the last, the action not tried yet. An empty list is the first
 * roll-out; null where the tree is complete or a limit is met. The same roll-outs give the same branch.
 */
export function nextBranch(rollouts: readonly Rollout[], shape: TreeShape): ReplayStep[] | null {
  if (rollouts.length === 0) return [];
  const actions = rollouts.reduce((sum, rollout) => sum + rollout.actions, 0);
  if (rollouts.length >= shape.rollouts || actions >= shape.actions) return null;
  const nodes = nodesOf(rollouts, shape);
  // Level by level, and within a level in the order in which the states were found.
  const order = [...nodes.values()].sort((a, b) => a.path.length - b.path.length);
  for (const { path, candidates, signature, tried, lost, isOpen } of order) {
    if (!isOpen || path.length >= shape.depth || tried.size >= shape.width || lost >= lossesAllowed) continue;
    const index = candidates.findIndex(
      ({ action }) => !tried.has(actionKey(action)) && (shape.irreversible || !looksFinal(action)),
    );
    if (index >= 0) return [...path, { candidates, index, signature }];
  }
  return null;
}

/** States met, by the actions that lead to them. */
function nodesOf(rollouts: readonly Rollout[], { expand }: TreeShape): Map<string, Node> {
  const nodes = new Map<string, Node>();
  for (const [number, { steps, success }] of rollouts.entries()) {
    const opens = number === 0 || expand === 'all' || expand === (success ? 'success' : 'failure');
    const path: ReplayStep[] = [];
    for (const { candidates, selection } of steps) {
      const evidence = selection.evidence ?? {};
      const signature = String(evidence['signature'] ?? '');
      const key = keyOf(path);
      const known = nodes.get(key);
      if (known && known.signature !== signature) {
        // What follows is of another state than the tree's: an episode like any other, no part of it.
        known.lost++;
        break;
      }
      const node = known ?? {
        path: [...path],
        candidates,
        signature,
        tried: new Set(),
        lost: 0,
        isOpen: false,
      };
      nodes.set(key, node);
      node.isOpen ||= opens;
      node.tried.add(actionKey(candidates[selection.index]!.action));
      path.push({ candidates, index: selection.index, signature });
    }
  }
  return nodes;
}

function keyOf(path: readonly ReplayStep[]): string {
  return JSON.stringify(path.map(({ candidates, index }) => actionKey(candidates[index]!.action)));
}

/** Share of the branches whose replay came out in the state that it was for. */
export function reproduced(
  rollouts: readonly Rollout[],
  shape: TreeShape,
): { branches: number; lost: number } {
  const nodes = nodesOf(rollouts, shape);
  const lost = [...nodes.values()].reduce((sum, node) => sum + node.lost, 0);
  return { branches: Math.max(0, rollouts.length - 1), lost };
}
