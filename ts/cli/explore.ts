/** explore.js: several actions tried in one state, by beginning again and doing the same up to it. */
import { Option } from 'commander';
import { successNote } from '../evaluation/runner.js';
import type { SeedRange } from '../evaluation/stage.js';
import { defaultShape, explore } from '../evaluation/tree/explore.js';
import { integerOption, listOption, numberOption, rangeOption, runCommand } from './command.js';
import { benchmarkOption, reportFaults } from './episode-options.js';
import { stageBars } from './progress.js';

interface ExploreFlags {
  benchmark: string;
  tasks: string[];
  seeds: SeedRange;
  out: string;
  policy: string;
  temperature?: number;
  n: number;
  maxSteps?: number;
  selector: string;
  width: number;
  depth: number;
  rollouts: number;
  actions?: number;
  expand: 'all' | 'success' | 'failure' | 'first';
  irreversible?: boolean;
  seed: number;
  workers: number;
  json?: boolean;
  quiet?: boolean;
}

export function main(argv: readonly string[]): Promise<number> {
  return runCommand(
    'explore',
    'Explores task instances as trees: a roll-out, then others that branch off from its states, by beginning again and ' +
      'doing the same up to there. Only for sandboxes and pages that may be begun again at will. The run is read by ' +
      'embed.js and train.js as any other; run again with the same options, it goes on where it stopped.',
    (command, context) => {
      command
        .requiredOption(...benchmarkOption)
        .requiredOption('--tasks <names>', 'task names and @sets, separated by commas', listOption)
        .requiredOption('--seeds <range>', 'episode seeds of each task', rangeOption)
        .requiredOption('--out <folder>', 'the run to begin or to continue')
        .option('--policy <name>', 'who proposes actions', 'page')
        .option('--temperature <number>', 'of a policy that samples', numberOption(1e-6, 1e6))
        .option('--n <count>', 'candidates a step', integerOption(1), 3)
        .option(
          '--max-steps <count>',
          "steps a roll-out may take (default: the benchmark's)",
          integerOption(1),
        )
        .option('--selector <name>', 'how roll-outs choose after their branch', 'first')
        .option('--width <count>', 'actions tried in one state', integerOption(1), defaultShape.width)
        .option(
          '--depth <count>',
          'states from the start in which others are tried',
          integerOption(1),
          defaultShape.depth,
        )
        .option(
          '--rollouts <count>',
          'episodes of one task and seed',
          integerOption(1),
          defaultShape.rollouts,
        )
        .option(
          '--actions <count>',
          'actions carried out for one task and seed, replays included',
          integerOption(1),
        )
        .addOption(
          new Option(
            '--expand <which>',
            'open branches in roll-outs that ended so; first: in no other than the first',
          )
            .choices(['all', 'success', 'failure', 'first'])
            .default(defaultShape.expand),
        )
        .option('--irreversible', 'also try actions that look as if they could not be undone, in a sandbox')
        .option('--seed <integer>', 'run seed', integerOption(0), 0)
        .option('--workers <count>', 'episodes at a time, all in one browser', integerOption(1), 6)
        .option('--json', 'print the outcome as one line of JSON')
        .option('--quiet', 'no progress')
        .action(async (flags: ExploreFlags) => {
          const { benchmark, tasks, seeds, out, policy, temperature, n, maxSteps, selector, seed, workers } =
            flags;
          const { width, depth, rollouts, actions = Number.POSITIVE_INFINITY, expand } = flags;
          const bars = stageBars(flags.quiet ?? false);
          try {
            const { faults, ...facts } = await explore({
              ...{ benchmark, tasks, seeds, out, policy, n, selector, seed, workers },
              ...(temperature === undefined ? {} : { temperature }),
              ...(maxSteps === undefined ? {} : { maxSteps }),
              shape: { width, depth, rollouts, actions, expand, irreversible: flags.irreversible ?? false },
              signal: context.signal,
              onProgress: (progress) =>
                bars.show(progress.stage, progress.total, progress.done, successNote(progress)),
            });
            bars.stop();
            if (flags.json) context.print(JSON.stringify({ ...facts, faults: faults.length }));
            else {
              context.print(
                `${facts.episodes} roll-outs of ${facts.instances} task instances, ${facts.actions} actions; ${facts.mixed} ` +
                  `instances with both outcomes; ${facts.lost} of ${facts.branches} branches did not reproduce; in ${facts.run}`,
              );
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
