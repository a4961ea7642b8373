/** Options of the commands that play episodes of a benchmark. */
import type { Command } from 'commander';
import type { VlmChoice } from '../agent/policy/registry.js';
import type { PlanFault } from '../evaluation/runner.js';
import type { EpisodeOptions, SeedRange } from '../evaluation/stage.js';
import {
  type CommandContext,
  describeError,
  integerOption,
  listOption,
  numberOption,
  rangeOption,
} from './command.js';
import { addVlmOptions, type VlmFlags, vlmChoice } from './vlm-options.js';

export interface EpisodeFlags extends VlmFlags {
  benchmark: string;
  tasks: string[];
  seeds: SeedRange;
  repeats: number;
  temperature?: number;
  n: number;
  maxSteps?: number;
  out: string;
  seed: number;
  workers: number;
  headed?: boolean;
  json?: boolean;
  quiet?: boolean;
}

/** Arguments of requiredOption: what every command that plays a benchmark asks for. */
export const benchmarkOption = [
  '--benchmark <name>',
  'which benchmark, e.g. miniwob, or miniwob+reworded for other words',
] as const;

export function addEpisodeOptions(command: Command): Command {
  return addVlmOptions(command)
    .requiredOption(...benchmarkOption)
    .requiredOption('--tasks <names>', 'task names and @sets, separated by commas', listOption)
    .requiredOption('--seeds <range>', 'episode seeds of each task, e.g. 0-29', rangeOption)
    .requiredOption('--out <folder>', 'the run to begin or to continue')
    .option('--repeats <count>', 'episodes of each task and seed', integerOption(1), 1)
    .option('--temperature <number>', 'of a policy that samples, or of the model', numberOption(0, 1e6))
    .option('--n <count>', 'candidates a step', integerOption(1), 3)
    .option('--max-steps <count>', "steps an episode may take (default: the benchmark's)", integerOption(1))
    .option('--seed <integer>', 'run seed: the same one gives the same episodes', integerOption(0), 0)
    .option('--workers <count>', 'episodes at a time, all in one browser', integerOption(1), 6)
    .option('--headed', 'show the browser')
    .option('--json', 'print the outcome as one line of JSON')
    .option('--quiet', 'no progress');
}

/** @throws BOQ_FILE_NOT_FOUND, BOQ_CONFIG_INVALID of the models' file */
export function episodeOptions(
  flags: EpisodeFlags,
  context: Pick<CommandContext, 'say'>,
): EpisodeOptions & { vlm: VlmChoice } {
  const { benchmark, tasks, seeds, repeats, policy, localizer, n, seed, workers } = flags;
  return {
    ...{ benchmark, tasks, seeds, repeats, policy, localizer, n, seed, workers },
    vlm: vlmChoice(flags, context),
    ...(flags.temperature === undefined ? {} : { temperature: flags.temperature }),
    ...(flags.maxSteps === undefined ? {} : { maxSteps: flags.maxSteps }),
    headed: flags.headed ?? false,
  };
}

/** Tells which episodes were given up; the command then fails. */
export function reportFaults(
  faults: readonly PlanFault[],
  { say, fail }: Pick<CommandContext, 'say' | 'fail'>,
): void {
  if (faults.length === 0) return;
  for (const { key, error } of faults.slice(0, 5)) {
    say(`Given up: ${key.task} seed ${key.seed} (${key.selector}): ${describeError(error)}`);
  }
  say(`${faults.length} episodes are missing: run the same command again to try them once more.`);
  fail();
}
