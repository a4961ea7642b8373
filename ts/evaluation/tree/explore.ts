/**
 * Tree exploration (after QLASS, arXiv 2502.02584) by reset and replay: a roll-out of each task instance, then others
 * that do the same up to a state, take another of the actions that were offered there, and go on to the end. Every
 * roll-out is an episode of an ordinary run, so that all later stages read it as any other; states that were reproduced
 * have equal contents and so equal rows, which gives training several actions a state.
 */

import { runEpisode } from '../../agent/loop.js';
import { type Method, scored } from '../../agent/methods/method.js';
import { replayThen } from '../../agent/methods/replay.js';
import { createSelector } from '../../agent/selectors/registry.js';
import type { Critic, Selector } from '../../agent/types.js';
import { BoqError } from '../../core/errors.js';
import { FolderRun } from '../../store/run.js';
import type { EpisodeKey } from '../../store/types.js';
import { type EpisodeSource, type PlanFault, type PlannedEpisode, runPlan } from '../runner.js';
import {
  describeRun,
  type EpisodeOptions,
  episodeKeys,
  resolveStage,
  type Stage,
  withBrowser,
} from '../stage.js';
import { nextBranch, type Rollout, reproduced, type TreeShape } from './branches.js';

/** What is explored, how, and where it is written. */
export interface ExploreOptions extends Omit<EpisodeOptions, 'repeats'> {
  /** Run folder to begin or to continue. */
  out: string;
  shape?: Partial<TreeShape>;
  /** How a roll-out chooses after its branch; default first, the policy's own choice. */
  selector?: string;
  /** For selectors that need scores: the critic and the name of its generation. */
  critic?: { critic: Critic; generation: string };
}

/** What the trees hold. */
export interface ExploreSummary {
  /** Absolute path of the run. */
  run: string;
  instances: number;
  episodes: number;
  successes: number;
  /** Actions carried out, replays included: what it cost. */
  actions: number;
  /** Roll-outs that were to branch off, and those of them whose replay did not come out the same. */
  branches: number;
  lost: number;
  /** Instances in which some roll-outs succeeded and others failed: these say which action matters. */
  mixed: number;
  faults: PlanFault[];
}

/** Width 3, three states deep, at most 12 roll-outs an instance; nothing that looks final is tried. */
export const defaultShape: TreeShape = {
  width: 3,
  depth: 3,
  rollouts: 12,
  actions: Number.POSITIVE_INFINITY,
  expand: 'all',
  irreversible: false,
};

/** Goes into the episode keys. */
export function treeName(
  { width, depth, rollouts, actions, expand, irreversible }: TreeShape,
  selector: string,
): string {
  const limit = Number.isFinite(actions) ? `&actions=${actions}` : '';
  return `tree@width=${width}&depth=${depth}&rollouts=${rollouts}${limit}&expand=${expand}&irreversible=${irreversible}/${selector}`;
}

/**
 * Explores each task and seed, or what is left of them.
 * @throws BOQ_USAGE, BOQ_TASK_UNKNOWN, BOQ_RUN_EXISTS, BOQ_BROWSER_NOT_FOUND, BOQ_FILE_WRITE, BOQ_ABORTED
 */
export async function explore(options: ExploreOptions): Promise<ExploreSummary> {
  const shape = { ...defaultShape, ...options.shape };
  requireSensible(shape);
  const stage = resolveStage({ ...options, repeats: 1 });
  const selector = createSelector(options.selector ?? 'first');
  if (selector.needsScores && !options.critic) {
    throw new BoqError(
      'BOQ_USAGE',
      `The selector ${selector.name} needs a trained model: give one with --model.`,
    );
  }
  const generation = selector.needsScores ? (options.critic?.generation ?? 'none') : 'none';
  const name = treeName(shape, selector.name);
  const run = await FolderRun.create(
    options.out,
    await describeRun('collect', stage, { selector: name, generation }),
  );
  const forest = new Forest(stage, run, shape, { selector, name, generation }, options);
  return withBrowser(stage, (source) => forest.grow(source));
}

class Forest {
  readonly #stage: Stage;
  readonly #run: FolderRun;
  readonly #shape: TreeShape;
  readonly #choice: { selector: Selector; name: string; generation: string };
  readonly #options: ExploreOptions;
  readonly #trees: { key: EpisodeKey; rollouts: Rollout[]; isComplete: boolean }[];

  constructor(
    stage: Stage,
    run: FolderRun,
    shape: TreeShape,
    choice: { selector: Selector; name: string; generation: string },
    options: ExploreOptions,
  ) {
    this.#stage = stage;
    this.#run = run;
    this.#shape = shape;
    this.#choice = choice;
    this.#options = options;
    this.#trees = episodeKeys(stage, { selector: choice.name, generation: choice.generation }).map((key) => ({
      ...{ key, rollouts: [], isComplete: false },
    }));
  }

  /** In rounds: the next branch of every tree that is not complete. What is committed is read, not played. */
  async grow(source: EpisodeSource): Promise<ExploreSummary> {
    const faults: PlanFault[] = [];
    for (let round = 0; this.#trees.some(({ isComplete }) => !isComplete); round++) {
      const planned: PlannedEpisode[] = [];
      const trees = [];
      for (const tree of this.#trees) {
        const branch = tree.isComplete ? null : nextBranch(tree.rollouts, this.#shape);
        tree.isComplete = branch === null;
        if (branch === null) continue;
        const method = this.#method(branch);
        planned.push({
          key: { ...tree.key, repeat: round },
          method,
          critic: method.needsScores ? (this.#options.critic?.critic ?? null) : null,
        });
        trees.push(tree);
      }
      faults.push(...(await this.#play(source, planned)));
      for (const [index, { key }] of planned.entries()) {
        const record = await this.#run.find(key);
        const tree = trees[index]!;
        // A roll-out that could not be played ends its tree for this time.
        if (!record) tree.isComplete = true;
        else {
          tree.rollouts.push({
            steps: await this.#run.steps(record),
            success: record.reward > 0,
            actions: record.costs?.steps ?? record.steps,
          });
        }
      }
    }
    return this.#summary(faults);
  }

  #play(source: EpisodeSource, plan: readonly PlannedEpisode[]): Promise<PlanFault[]> {
    const { signal, onProgress } = this.#options;
    return runPlan({
      ...this.#stage,
      run: this.#run,
      source,
      plan,
      ...(signal ? { signal } : {}),
      onProgress: (progress) =>
        onProgress?.({ ...progress, stage: `explore, roll-out ${(plan[0]?.key.repeat ?? 0) + 1}` }),
    });
  }

  #method(branch: ReturnType<typeof nextBranch> & object): Method {
    const { selector, name } = this.#choice;
    return {
      name,
      needsScores: selector.needsScores,
      isStepwise: true,
      play: (context) => {
        const chosen = selector.needsScores ? scored(selector) : selector;
        const { proposer, selector: replaying } = replayThen(branch, context.proposer, chosen);
        return runEpisode({ ...context, proposer, selector: replaying });
      },
    };
  }

  #summary(faults: PlanFault[]): ExploreSummary {
    const all = this.#trees.flatMap(({ rollouts }) => rollouts);
    const replays = this.#trees.map(({ rollouts }) => reproduced(rollouts, this.#shape));
    const sum = (values: readonly number[]): number => values.reduce((total, value) => total + value, 0);
    return {
      run: this.#run.folder,
      instances: this.#trees.length,
      episodes: all.length,
      successes: all.filter(({ success }) => success).length,
      actions: sum(all.map(({ actions }) => actions)),
      branches: sum(replays.map(({ branches }) => branches)),
      lost: sum(replays.map(({ lost }) => lost)),
      mixed: this.#trees.filter(({ rollouts }) => new Set(rollouts.map(({ success }) => success)).size > 1)
        .length,
      faults,
    };
  }
}

function requireSensible({ width, depth, rollouts, actions }: TreeShape): void {
  const isWhole = [width, depth, rollouts].every((value) => Number.isInteger(value) && value >= 1);
  if (isWhole && actions > 0) return;
  throw new BoqError(
    'BOQ_USAGE',
    `Expected a tree's width, depth and roll-outs to be whole and at least 1, and actions above 0, got ` +
      `${width}, ${depth}, ${rollouts} and ${actions}.`,
  );
}
