/** collect.js: a policy plays a benchmark's tasks into a run folder. */
import { collect } from '../evaluation/collect.js';
import { successNote } from '../evaluation/runner.js';
import { numberOption, runCommand } from './command.js';
import { addEpisodeOptions, type EpisodeFlags, episodeOptions, reportFaults } from './episode-options.js';
import { startProgress } from './progress.js';
import { budgetOf, reportBudget, withinBudget } from './vlm-options.js';

interface CollectFlags extends EpisodeFlags {
  epsilon: number;
  selector?: string;
}

export function main(argv: readonly string[]): Promise<number> {
  return runCommand(
    'collect',
    'Lets a policy play the tasks of a benchmark and stores every step with all its candidates, as data to train on. ' +
      'Run again with the same options, it goes on where it stopped.',
    (command, context) => {
      addEpisodeOptions(command)
        .option('--epsilon <number>', 'share of steps that try another candidate', numberOption(0, 1), 0.5)
        .option('--selector <name>', 'another way to choose, e.g. random; replaces --epsilon')
        .action(async (flags: CollectFlags) => {
          const bar = startProgress('collecting', 0, { quiet: flags.quiet ?? false });
          try {
            const options = episodeOptions(flags, context);
            const budget = budgetOf(flags, options.vlm);
            const summary = await collect({
              ...options,
              ...withinBudget(budget),
              selector: flags.selector ?? `epsilon-greedy@epsilon=${flags.epsilon}`,
              out: flags.out,
              signal: context.signal,
              onProgress: (progress) => {
                bar.setTotal(progress.total);
                bar.update(progress.done, successNote(progress));
              },
            });
            bar.stop();
            const { faults, ...facts } = summary;
            if (flags.json) context.print(JSON.stringify({ ...facts, faults: faults.length }));
            else {
              context.print(
                `${facts.episodes} episodes, success ${facts.successRate.toFixed(3)}, ${facts.steps} steps, in ${facts.run}`,
              );
            }
            reportFaults(faults, context);
            if (!summary.complete) reportBudget(budget, context);
          } finally {
            bar.stop();
          }
        });
    },
    argv,
  );
}
