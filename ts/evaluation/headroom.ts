/**
 * What one other choice would have changed: along the policy's own course, each state's other candidates were tried
 * once (tree exploration with the roll-outs of the policy). Any rule can then be judged without a browser, by the
 * episode that follows where it first leaves the policy; and so can the oracle, which knows every outcome.
 */
import { readFile } from 'node:fs/promises';
import { extname } from 'node:path';
import { actionKey } from '../agent/methods/method.js';
import type { Critic, HistoryEntry, Screenshot } from '../agent/types.js';
import type { FolderRun } from '../store/run.js';
import type { EpisodeRecord, StepRecord, StepScores } from '../store/types.js';
import type { EvaluationRow } from './summary.js';

/** One state on the policy's own course. */
export interface Fork {
  step: StepRecord;
  history: HistoryEntry[];
  /** By candidate: whether the episode that took it succeeded; null where it was not tried or did not reproduce. */
  outcomes: (boolean | null)[];
}

/** One task instance: the policy's course, and what leaving it would have led to. */
export interface Course {
  record: EpisodeRecord;
  success: boolean;
  forks: Fork[];
}

/** Reads the courses of an explored run. @throws BOQ_RUN_INVALID */
export async function readCourses(run: FolderRun): Promise<Course[]> {
  const instances = new Map<string, { record: EpisodeRecord; steps: StepRecord[] }[]>();
  for await (const episode of run.episodes()) {
    const key = JSON.stringify([episode.record.key.task, episode.record.key.seed]);
    instances.set(key, [...(instances.get(key) ?? []), episode]);
  }
  return [...instances.values()].flatMap((rollouts) => {
    const own = rollouts.find(({ record }) => record.key.repeat === 0);
    if (!own) return [];
    const others = rollouts.filter((rollout) => rollout !== own);
    const history: HistoryEntry[] = [];
    const forks = own.steps.map((step): Fork => {
      const before = [...history];
      const taken = step.candidates[step.selection.index]!;
      history.push({ ...taken, result: step.result });
      const outcomes = step.candidates.map(({ action }, index) => {
        if (index === step.selection.index) return own.record.reward > 0;
        const branch = others.find(({ steps }) => leavesAt(own.steps, steps, step.index, actionKey(action)));
        return branch ? branch.record.reward > 0 : null;
      });
      return { step, history: before, outcomes };
    });
    return [{ record: own.record, success: own.record.reward > 0, forks }];
  });
}

/** Whether a roll-out does the same up to a step, in the same states, and that action there. */
function leavesAt(
  own: readonly StepRecord[],
  other: readonly StepRecord[],
  at: number,
  action: string,
): boolean {
  for (let index = 0; index <= at; index++) {
    const [mine, theirs] = [own[index], other[index]];
    if (!mine || !theirs || signatureOf(mine) !== signatureOf(theirs)) return false;
    if (index < at && takenKey(mine) !== takenKey(theirs)) return false;
  }
  // It goes on as the policy does: what branches off again later says nothing about one other choice.
  return takenKey(other[at]!) === action && other[at]!.selection.evidence?.['replayed'] === false;
}

const signatureOf = ({ selection }: StepRecord): unknown => selection.evidence?.['signature'];
const takenKey = ({ candidates, selection }: StepRecord): string =>
  actionKey(candidates[selection.index]!.action);

/** Values of every fork by a critic, in order. */
export async function scoreCourses(
  run: FolderRun,
  courses: readonly Course[],
  critic: Critic,
): Promise<StepScores[][]> {
  const scores: StepScores[][] = [];
  for (const { record, forks } of courses) {
    const own: Promise<StepScores>[] = forks.map(async ({ step, history }) => {
      const { screenshot: name, viewport } = step.observation;
      const path = run.shotPath(record.attempt, name);
      const { width, height } = viewport;
      const format = extname(name).slice(1) as Screenshot['format'];
      const screenshot = { bytes: await readFile(path), format, width, height };
      const scoring = critic.begin({ instruction: record.instruction, history, screenshot });
      for (const candidate of step.candidates) scoring.add(candidate);
      return scoring.scores();
    });
    scores.push(await Promise.all(own));
  }
  return scores;
}

/** Chooses a candidate by its values; index 0 is the policy's own. */
export type Choice = (scores: StepScores) => number;

/**
 * The episodes that follow where a rule first leaves the policy's course. A choice whose outcome is not known counts as
 * staying; `unknown` says how often that was.
 */
export function deviate(
  label: string,
  courses: readonly Course[],
  scores: readonly StepScores[][],
  choose: Choice,
): { rows: EvaluationRow[]; unknown: number; overrides: number } {
  let unknown = 0;
  let overrides = 0;
  const rows = courses.map(({ record, success, forks }, course) => {
    let reached = success;
    for (const [index, { step, outcomes }] of forks.entries()) {
      const chosen = choose(scores[course]![index]!);
      if (chosen === step.selection.index) continue;
      const outcome = outcomes[chosen] ?? null;
      if (outcome === null) {
        unknown++;
        continue;
      }
      overrides++;
      reached = outcome;
      break;
    }
    return rowOf(label, record, reached);
  });
  return { rows, unknown, overrides };
}

/** The policy itself, and the best that one other choice could have reached. */
export function bounds(courses: readonly Course[]): { policy: EvaluationRow[]; oracle: EvaluationRow[] } {
  return {
    policy: courses.map(({ record, success }) => rowOf('policy', record, success)),
    oracle: courses.map(({ record, success, forks }) =>
      rowOf('oracle', record, success || forks.some(({ outcomes }) => outcomes.includes(true))),
    ),
  };
}

/** A state in which the policy went on to fail, and another candidate would have led to success. */
export interface Missed {
  course: Course;
  fork: Fork;
  /** Place of the fork on its course. */
  index: number;
}

/** Everything that the oracle's room is made of. */
export function missed(courses: readonly Course[]): Missed[] {
  return courses.flatMap((course) =>
    course.success
      ? []
      : course.forks.flatMap((fork, index) =>
          fork.outcomes.includes(true) ? [{ course, fork, index }] : [],
        ),
  );
}

function rowOf(selector: string, { key, steps }: EpisodeRecord, success: boolean): EvaluationRow {
  const { task, seed } = key;
  return { selector, task, seed, repeat: 0, training: '', success, rawReward: null, steps };
}
