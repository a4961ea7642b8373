/** The learning curve of a loop: success on validation seeds against the number of training episodes. */
import { join } from 'node:path';
import { type LoopEvent, readJournal } from './journal.js';

/** One model, or the policy alone, measured on the validation episodes. */
export interface CurvePoint {
  /** -1: the policy alone; 0: after exploring; k: after cycle k. */
  generation: number;
  /** Episodes that the model was trained on; 0 for the policy. */
  trained: number;
  /** On validation seeds. With a margin that was chosen on the same seeds it flatters slightly. */
  successRate: number;
  /** Over episodes; null where there are fewer than two. */
  standardError: number | null;
  episodes: number;
  margin: number | null;
}

/** Points in the order of generations; where one was measured again on more data, the later. */
export function learningCurve(events: readonly LoopEvent[]): CurvePoint[] {
  const points = new Map<number, CurvePoint>();
  for (const entry of events) {
    if (entry.event !== 'validated') continue;
    const { generation, trained, successRate, standardError, episodes, margin } = entry;
    points.set(generation, { generation, trained, successRate, standardError, episodes, margin });
  }
  return [...points.values()].sort((a, b) => a.generation - b.generation);
}

/** The point of highest success on validation seeds; of equals the earlier, which learned as much from less. */
export function bestOf(curve: readonly CurvePoint[]): CurvePoint | null {
  let best: CurvePoint | null = null;
  for (const point of curve) {
    if (point.generation >= 0 && (best === null || point.successRate > best.successRate)) best = point;
  }
  return best;
}

/** The curve of a loop's folder. @throws BOQ_FILE_CORRUPT */
export async function readCurve(folder: string): Promise<CurvePoint[]> {
  return learningCurve(await readJournal(join(folder, 'journal.jsonl')));
}
