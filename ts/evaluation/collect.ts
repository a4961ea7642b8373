/** The first stage: episodes of a policy, every candidate stored, as data to learn from. */
import { createMethod } from '../agent/methods/registry.js';
import type { Critic } from '../agent/types.js';
import { BoqError } from '../core/errors.js';
import { FolderRun } from '../store/run.js';
import type { Usage } from '../store/types.js';
import { type PlanFault, runPlan } from './runner.js';
import { describeRun, type EpisodeOptions, episodeKeys, resolveStage, withBrowser } from './stage.js';

/** Which episodes are collected, and where to. */
export interface CollectOptions extends EpisodeOptions {
  /** Run folder to begin or to continue. */
  out: string;
  /** How actions are chosen, a selector with rules if any; default epsilon-greedy@epsilon=0.5. */
  selector?: string;
  /** For selectors that need scores: the critic and the name of its generation. */
  critic?: { critic: Critic; generation: string };
  /** Asked before each episode: true begins no further one. The run can be continued later. */
  until?: () => boolean;
  /** What each step cost, as it is recorded. */
  onUsage?: (usage: readonly Usage[]) => void;
}

/** What a collection has played. */
export interface CollectSummary {
  /** Absolute path of the run. */
  run: string;
  episodes: number;
  successes: number;
  successRate: number;
  steps: number;
  /** Episodes of this call; the others were there. */
  played: number;
  seconds: number;
  faults: PlanFault[];
  /** False where `until` ended the run before its last episode. */
  complete: boolean;
}

/**
 * Plays each task, seed and repeat once; what the run holds already is left as it is.
 * @throws BOQ_USAGE, BOQ_TASK_UNKNOWN, BOQ_RUN_EXISTS, BOQ_BROWSER_NOT_FOUND, BOQ_FILE_WRITE, BOQ_ABORTED
 */
export async function collect(options: CollectOptions): Promise<CollectSummary> {
  const started = performance.now();
  const stage = resolveStage(options);
  const method = createMethod(options.selector ?? 'epsilon-greedy@epsilon=0.5', options.vlm);
  if (method.needsScores && !options.critic) {
    throw new BoqError(
      'BOQ_USAGE',
      `The selector ${method.name} needs a trained model: give one with --model.`,
    );
  }
  const critic = method.needsScores ? (options.critic?.critic ?? null) : null;
  const generation = critic ? (options.critic?.generation ?? 'none') : 'none';
  const run = await FolderRun.create(
    options.out,
    await describeRun('collect', stage, { selector: method.name, generation }),
  );
  const plan = episodeKeys(stage, { selector: method.name, generation }).map((key) => ({
    key,
    method,
    critic,
  }));
  let played = 0;
  const faults = await withBrowser(stage, (source) =>
    runPlan({
      ...stage,
      run,
      plan,
      source,
      ...(options.signal ? { signal: options.signal } : {}),
      ...(options.until ? { until: options.until } : {}),
      ...(options.onUsage ? { onStep: ({ usage }) => options.onUsage?.(usage) } : {}),
      onProgress: (progress) => {
        played = progress.played;
        options.onProgress?.({ ...progress, stage: 'collect' });
      },
    }),
  );
  let episodes = 0;
  let successes = 0;
  let steps = 0;
  for await (const record of run.records()) {
    episodes++;
    successes += record.reward > 0 ? 1 : 0;
    steps += record.steps;
  }
  const seconds = (performance.now() - started) / 1000;
  const successRate = episodes === 0 ? 0 : successes / episodes;
  const complete = episodes + faults.length >= plan.length;
  return { run: run.folder, episodes, successes, successRate, steps, played, seconds, faults, complete };
}
