/** An episode played aside: kept in memory with its pictures until a rule decides which attempt counts. */
import type { ObservationRecord, StepRecord } from '../../store/types.js';
import type { EpisodeRecorder, EpisodeResult } from '../episode.js';
import type { Proposer, Screenshot, Selector } from '../types.js';
import type { PlayContext, Player } from './method.js';

export class Attempt implements EpisodeRecorder {
  readonly steps: StepRecord[] = [];
  readonly #shots = new Map<string, Screenshot>();
  result: EpisodeResult | null = null;

  shot(name: string, screenshot: Screenshot): string {
    this.#shots.set(name, screenshot);
    return name;
  }

  async step(record: StepRecord): Promise<void> {
    this.steps.push(record);
  }

  /** Q of the last action taken; null where it was not scored. */
  get lastQ(): number | null {
    const { scores, selection } = this.steps.at(-1) ?? { scores: null, selection: null };
    return scores && selection ? scores.q[selection.index]! : null;
  }

  /**
   * Writes the attempt as the episode.
   * @param others attempts that do not count; what they cost goes with the first step
   */
  async recordTo(recorder: EpisodeRecorder, others: readonly Attempt[]): Promise<EpisodeResult> {
    const lost = others.flatMap(({ steps }) => steps.flatMap(({ usage }) => usage));
    const place = (observation: ObservationRecord): ObservationRecord => {
      const name = observation.screenshot;
      return { ...observation, screenshot: recorder.shot(name, this.#shots.get(name)!) };
    };
    for (const [index, step] of this.steps.entries()) {
      const usage = index === 0 ? [...lost, ...step.usage] : step.usage;
      await recorder.step({ ...step, usage, observation: place(step.observation) });
    }
    const result = this.result!;
    const { finalObservation } = result;
    return { ...result, finalObservation: finalObservation && place(finalObservation) };
  }
}

/**
 * Plays attempt number `index` aside, on the instance as it is for the first and on a new start for the others.
 * Attempt 0 has the draws that the episode would have had without attempts.
 */
export async function playAttempt(
  inner: Player,
  context: PlayContext,
  selector: Selector,
  index: number,
  changes: { proposer?: Proposer } = {},
): Promise<Attempt> {
  const attempt = new Attempt();
  const episode = index === 0 ? context.episode : await context.reset();
  const { maxSteps } = context.limits;
  attempt.result = await inner(
    {
      ...context,
      ...changes,
      episode,
      recorder: attempt,
      random: (step, purpose) => context.random(step + index * (maxSteps + 1), purpose),
    },
    selector,
  );
  return attempt;
}
