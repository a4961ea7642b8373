/**
 * Choosing the override margin of best-of-q on validation seeds.
 *
 * The sweep is exact and plays little twice: under a larger margin an episode takes the same course unless one of
 * the gains for which it left the first candidate is within the new margin, so only such episodes are played again.
 *
 * The choice is wary of noise: from the margin of highest success, go on to the largest whose paired loss against it
 * is within one standard error of that loss. Overriding less is the safer side: a margin too large only loses gains,
 * one too small loses to the policy's own order.
 */
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { EpisodeRecord, StepRecord } from '../store/types.js';
import { meanWithError } from './statistics.js';

/** In units of Q, which lie between 0 and 1 for rewards of 0 and 1. The last one all but forbids overriding. */
export const defaultMarginGrid: readonly number[] = [
  0, 0.01, 0.02, 0.035, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.5, 1,
];

/** One validation episode under one margin. */
export interface MarginOutcome {
  success: boolean;
  /** Gains in Q for which the first candidate was left. */
  gains: readonly number[];
}

export interface MarginPoint {
  margin: number;
  /** In the order of the episodes. */
  outcomes: MarginOutcome[];
  /** Episodes that had to be played for this point. */
  played: number;
}

/** Plays the given episodes (by index) under a margin. */
export type PlayMargin = (margin: number, episodes: readonly number[]) => Promise<MarginOutcome[]>;

/**
 * Outcomes of all episodes under every margin of the grid.
 * @param grid margins, at least one; any order
 */
export async function sweepMargins(
  episodes: number,
  grid: readonly number[],
  play: PlayMargin,
): Promise<MarginPoint[]> {
  const points: MarginPoint[] = [];
  let outcomes: MarginOutcome[] = [];
  for (const margin of [...new Set(grid)].sort((a, b) => a - b)) {
    const changed = Array.from({ length: episodes }, (_, index) => index).filter((index) => {
      const before = outcomes[index];
      return before === undefined || before.gains.some((gain) => gain <= margin);
    });
    const played = changed.length > 0 ? await play(margin, changed) : [];
    outcomes = [...outcomes];
    changed.forEach((episode, index) => {
      outcomes[episode] = played[index]!;
    });
    points.push({ margin, outcomes, played: changed.length });
  }
  return points;
}

/** What the sweep shows of one margin. */
export interface MarginRow {
  margin: number;
  successRate: number;
  /** Success of the best margin minus this one's, paired, and its standard error. */
  loss: number;
  lossError: number;
  played: number;
}

/** Rule by which {@link chooseMargin} chooses, for margin.json. */
export const marginRule =
  'largest margin whose paired loss against the most successful one is within one standard error';

/** Applies the rule. Among margins of equal success the largest counts as the best. */
export function chooseMargin(points: readonly MarginPoint[]): { margin: number; rows: MarginRow[] } {
  const success = (point: MarginPoint): number[] => point.outcomes.map((outcome) => Number(outcome.success));
  const total = (point: MarginPoint): number => success(point).reduce((sum, value) => sum + value, 0);
  const best = points.reduce((found, point) => (total(point) >= total(found) ? point : found));
  const reference = success(best);
  const rows = points.map((point): MarginRow => {
    const own = success(point);
    const loss = meanWithError(own.map((value, index) => reference[index]! - value));
    return {
      margin: point.margin,
      successRate: total(point) / own.length,
      loss: loss.mean,
      lossError: loss.standardError ?? 0,
      played: point.played,
    };
  });
  const within = rows.filter(({ loss, lossError }) => loss <= lossError);
  return { margin: Math.max(...within.map(({ margin }) => margin)), rows };
}

/** What a validation episode shows: its end, and the gains for which it left the first candidate. */
export function marginOutcome(record: EpisodeRecord, steps: readonly StepRecord[]): MarginOutcome {
  const gains = steps
    // What was done whatever the margin no other margin changes.
    .filter(
      ({ scores, selection: { index, evidence } }) =>
        scores !== null && index !== 0 && !evidence?.['rescued'],
    )
    .map(({ scores, selection }) => {
      // A rule that compares something other than plain Q says by how much.
      const gain = selection.evidence?.['gain'];
      return typeof gain === 'number' ? gain : scores!.q[selection.index]! - scores!.q[0]!;
    });
  return { success: record.reward > 0, gains };
}

/** margin.json in a model folder: the margin, and everything that it was chosen under. */
export interface MarginRecord {
  version: 1;
  margin: number;
  rule: string;
  /** A margin holds for these conditions; under others it is chosen anew. */
  conditions: MarginConditions;
  rows: MarginRow[];
}

export interface MarginConditions {
  model: string;
  benchmark: string;
  tasks: string[];
  seeds: { from: number; to: number };
  repeats: number;
  policy: string;
  n: number;
  maxSteps: number;
  seed: number;
  grid: number[];
  /** With a margin of 0. */
  method: string;
}

const plainMethod = 'best-of-q';

/** A method's name as part of a file's or folder's. */
export function methodAsPath(method: string): string {
  return method.replace(/[^a-z0-9.=-]+/gi, '_');
}

/** Each method of a model has a margin of its own; that of plain best-of-q is margin.json. */
function fileName(method: string): string {
  return method === plainMethod ? 'margin.json' : `margin-${methodAsPath(method)}.json`;
}

/** The margin chosen under exactly these conditions; null where there is none. */
export async function readMargin(model: string, conditions: MarginConditions): Promise<MarginRecord | null> {
  const text = await readFile(join(model, fileName(conditions.method)), 'utf8').catch(() => null);
  if (text === null) return null;
  try {
    const record = JSON.parse(text) as MarginRecord;
    const isSame = JSON.stringify(record.conditions) === JSON.stringify(conditions);
    return record.version === 1 && record.rule === marginRule && isSame ? record : null;
  } catch {
    return null;
  }
}

/** The margin kept in a model folder, whatever it was chosen under; null where none was chosen yet. */
export async function keptMargin(model: string, method = plainMethod): Promise<number | null> {
  return (await keptRecord(model, method))?.margin ?? null;
}

/** As {@link keptMargin}, with everything that the sweep showed. */
export async function keptRecord(model: string, method = plainMethod): Promise<MarginRecord | null> {
  const text = await readFile(join(model, fileName(method)), 'utf8').catch(() => null);
  if (text === null) return null;
  try {
    const record = JSON.parse(text) as MarginRecord;
    return record.version === 1 && record.margin >= 0 ? record : null;
  } catch {
    return null;
  }
}

export async function writeMargin(model: string, record: MarginRecord): Promise<void> {
  await writeFile(join(model, fileName(record.conditions.method)), `${JSON.stringify(record, null, 2)}\n`);
}
