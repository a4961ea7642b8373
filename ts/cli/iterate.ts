/** iterate.js: the paper's loop in one command: explore, train, exploit, add, train again. */
import { InvalidArgumentError, Option } from 'commander';
import { nearestNames } from '../core/nearest.js';
import { openBenchmark } from '../evaluation/benchmarks/registry.js';
import { type LoopLimits, parseLimits } from '../evaluation/loop/budget.js';
import type { CurvePoint } from '../evaluation/loop/curve.js';
import { runLoop } from '../evaluation/loop/iterate.js';
import { type LoopPlan, paperLoop } from '../evaluation/loop/plan.js';
import { RealStages } from '../evaluation/loop/stages.js';
import type { SeedRange } from '../evaluation/stage.js';
import { hyperParameters, type Preset, parseHyperParameter, presets } from '../learning/hyper-parameters.js';
import type { NativeTrainConfig } from '../native/surface.js';
import { curveTable } from '../report/terminal.js';
import { writeReport } from '../report/write.js';
import { findCheckpoint } from './checkpoint.js';
import { integerOption, listOption, numberOption, rangeOption, runCommand } from './command.js';
import { addCacheOptions, type CacheFlags, openCache } from './embedding-cache.js';
import { benchmarkOption, reportFaults } from './episode-options.js';
import { stageBars } from './progress.js';
import { addVlmOptions, pricesOf, type VlmFlags, vlmChoice } from './vlm-options.js';

interface IterateFlags extends VlmFlags, CacheFlags {
  benchmark: string;
  tasks: string[];
  seeds: SeedRange;
  sameSeeds?: boolean;
  out: string;
  repeats: number;
  temperature?: number;
  n: number[];
  maxSteps?: number;
  exploreRuns: number;
  epsilon: number;
  exploreSelector?: string;
  cycles: number;
  cycleRuns: number;
  selector: string;
  curriculum: number;
  warmStart?: boolean;
  validationTasks?: string[];
  validationSeeds: SeedRange;
  validationRepeats: number;
  preset: Preset;
  train: NativeTrainConfig;
  budget?: LoopLimits;
  seed: number;
  embedder?: string;
  device: string;
  workers: number;
  json?: boolean;
  quiet?: boolean;
}

export function main(argv: readonly string[]): Promise<number> {
  return runCommand(
    'iterate',
    'The self-improving loop: exploring runs, training, then cycles of runs that use what was learned, each followed ' +
      'by training on everything. Run again with the same options, it goes on where it stopped. The defaults are the ' +
      "paper's: five exploring runs, four cycles of two.",
    (command, context) => {
      addCacheOptions(addVlmOptions(command))
        .requiredOption(...benchmarkOption)
        .requiredOption('--tasks <names>', 'task names and @sets, separated by commas', listOption)
        .requiredOption(
          '--seeds <range>',
          'episode seeds of the first run; later runs take the next',
          rangeOption,
        )
        .requiredOption('--out <folder>', 'the loop to begin or to continue: its runs, models and report')
        .option('--same-seeds', 'every run plays the same seeds')
        .option(
          '--repeats <count>',
          'episodes of each task and seed in a run',
          integerOption(1),
          paperLoop.repeats,
        )
        .option('--temperature <number>', 'of a policy that samples, or of the model', numberOption(0, 1e6))
        .option(
          '--n <counts>',
          'candidates a step; several, e.g. 1,3,5, take turns by run',
          countsOption,
          [3],
        )
        .option(
          '--max-steps <count>',
          "steps an episode may take (default: the benchmark's)",
          integerOption(1),
        )
        .option(
          '--explore-runs <count>',
          'runs before the first training',
          integerOption(1),
          paperLoop.explore.runs,
        )
        .option(
          '--epsilon <number>',
          'share of their steps that try another candidate',
          numberOption(0, 1),
          0.5,
        )
        .option('--explore-selector <name>', 'another way to explore, e.g. random; replaces --epsilon')
        .option(
          '--cycles <count>',
          'cycles after it; more may be asked for later',
          integerOption(0),
          paperLoop.cycles,
        )
        .option('--cycle-runs <count>', 'runs of each cycle', integerOption(1), paperLoop.exploit.runs)
        .option(
          '--selector <name>',
          "how they choose; best-of-q is the paper's, recommended chooses a margin on validation seeds",
          paperLoop.exploit.selector,
        )
        .option(
          '--curriculum <share>',
          'share of the tasks that a cycle plays: those whose outcome the model is least sure of',
          numberOption(0, 1),
          paperLoop.curriculum,
        )
        .option('--warm-start', 'each training starts from the model before it, and not from new weights')
        .option(
          '--validation-tasks <names>',
          'tasks of the learning curve (default: those of training)',
          listOption,
        )
        .option('--validation-seeds <range>', 'seeds of the learning curve', rangeOption, {
          from: 10_000,
          to: 10_004,
        })
        .option('--validation-repeats <count>', 'episodes of each of them', integerOption(1), 1)
        .addOption(new Option('--preset <name>', 'of training').choices(presets).default(paperLoop.preset))
        .option(
          '--train <name=value>',
          'a setting of training, as of train.js; repeatable',
          settingOption,
          {},
        )
        .option(
          '--budget <limits>',
          'ends the collecting when it is spent, e.g. 90min, 5000episodes, 2.5usd, or several with commas; what was ' +
            'collected is still trained on and measured',
          parseLimits,
        )
        .option('--seed <integer>', 'seed of everything that is drawn', integerOption(0), paperLoop.seed)
        .option(
          '--embedder <checkpoint>',
          'checkpoint folder or Hugging Face id (default: the built-in random one)',
        )
        .option('--device <device>', 'auto, cpu or cuda:N', 'auto')
        .option('--workers <count>', 'episodes at a time, all in one browser', integerOption(1), 6)
        .option('--json', 'print the outcome as one line of JSON')
        .option('--quiet', 'no progress')
        .action(async (flags: IterateFlags) => {
          const plan = planOf(flags);
          const { out, device, workers } = flags;
          const vlm = vlmChoice(flags, context);
          const budget = limitsOf(flags);
          const prices = pricesOf(vlm, budget.usd !== undefined);
          const { signal } = context;
          const bars = stageBars(flags.quiet ?? false);
          const draw = async (curve: readonly CurvePoint[]): Promise<void> => {
            await writeReport({ paths: [out], out: `${out}/report.html`, title: `Loop ${out}` });
            bars.stop();
            if (!flags.quiet) context.say(curveTable(curve));
          };
          try {
            const embedder = await findCheckpoint(flags.embedder);
            await using cache = await openCache(flags);
            await using stages = new RealStages(plan, {
              ...{ embedder, device, workers, vlm, prices, signal },
              ...(cache === null ? {} : { cache }),
            });
            const result = await runLoop(
              {
                ...{ plan, out, signal, budget, prices },
                onPoint: draw,
                onProgress: ({ stage, done, total, note, overall }) => {
                  const share = Math.floor((100 * overall.done) / Math.max(1, overall.total));
                  bars.show(stage, total, done, `${note}${note && ', '}loop ${share} %`);
                },
              },
              stages,
            );
            bars.stop();
            const { faults, ...facts } = result;
            if (flags.json) context.print(JSON.stringify({ ...facts, faults: faults.length }));
            else {
              context.print(curveTable(result.curve));
              if (result.endedBy) context.print(`Ended early: ${result.endedBy}.`);
              if (result.best) context.print(`Best: ${result.best}\nLast: ${result.last}`);
            }
            reportFaults(faults, context);
          } finally {
            bars.stop();
          }
        });
    },
    argv,
  );
}

function planOf(flags: IterateFlags): LoopPlan {
  const benchmark = openBenchmark(flags.benchmark);
  const tasks = benchmark.resolveTasks(flags.tasks);
  return {
    benchmark: flags.benchmark,
    tasks,
    policy: flags.policy,
    localizer: flags.localizer,
    ...(flags.temperature === undefined ? {} : { temperature: flags.temperature }),
    seeds: flags.seeds,
    sameSeeds: flags.sameSeeds ?? false,
    repeats: flags.repeats,
    n: flags.n,
    maxSteps: flags.maxSteps ?? null,
    explore: {
      runs: flags.exploreRuns,
      selector: flags.exploreSelector ?? `epsilon-greedy@epsilon=${flags.epsilon}`,
    },
    cycles: flags.cycles,
    exploit: { runs: flags.cycleRuns, selector: flags.selector },
    curriculum: flags.curriculum,
    warmStart: flags.warmStart ?? false,
    preset: flags.preset,
    config: flags.train,
    validation: {
      tasks: flags.validationTasks ? benchmark.resolveTasks(flags.validationTasks) : tasks,
      seeds: flags.validationSeeds,
      repeats: flags.validationRepeats,
    },
    seed: flags.seed,
  };
}

/** `--budget`, and what the options of models say of minutes and dollars; the smaller where both do. */
function limitsOf({ budget = {}, maxUsd, maxMinutes, maxTokens, maxCalls }: IterateFlags): LoopLimits {
  const smaller = (a?: number, b?: number): number =>
    Math.min(a ?? Number.POSITIVE_INFINITY, b ?? Number.POSITIVE_INFINITY);
  const usd = smaller(budget.usd, maxUsd);
  const minutes = smaller(budget.minutes, maxMinutes);
  return {
    ...budget,
    ...(Number.isFinite(usd) ? { usd } : {}),
    ...(Number.isFinite(minutes) ? { minutes } : {}),
    ...(maxTokens === undefined ? {} : { tokens: maxTokens }),
    ...(maxCalls === undefined ? {} : { calls: maxCalls }),
  };
}

function settingOption(text: string, before: NativeTrainConfig): NativeTrainConfig {
  const [name = '', value] = text.split('=', 2);
  const parameter = hyperParameters.find((one) => one.name === name);
  if (!parameter || value === undefined) {
    const names = hyperParameters.map((one) => one.name);
    throw new InvalidArgumentError(`Expected NAME=VALUE, e.g. ${nearestNames(name, names)[0]}=...`);
  }
  try {
    return { ...before, [name]: parseHyperParameter(parameter, value) };
  } catch (error) {
    throw new InvalidArgumentError((error as Error).message);
  }
}

function countsOption(text: string): number[] {
  return listOption(text).map(integerOption(1));
}
