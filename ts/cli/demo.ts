/** demo.js: the whole method on small pages in a few minutes. It prints what it measured. */
import { demo } from '../evaluation/studies/index.js';
import { integerOption, runCommand } from './command.js';
import { conduct } from './experiment.js';

interface DemoFlags {
  name: string;
  seed: number;
  workers: number;
}

export function main(argv: readonly string[]): Promise<number> {
  return runCommand(
    'demo',
    'Shows the whole method on small pages in a real browser: plays 1,800 episodes, trains a Q-function on them, and ' +
      'measures what it changes on seeds and on tasks that training never saw. Run again, it goes on where it stopped.',
    (command, context) => {
      command
        .option('--name <name>', 'folders: runs/NAME-*, models/NAME', 'demo')
        .option('--seed <integer>', 'seed of everything that is drawn', integerOption(0), 0)
        .option('--workers <count>', 'episodes at a time, all in one browser', integerOption(1), 6)
        .action(({ seed, ...flags }: DemoFlags) =>
          conduct(demo(seed), { ...flags, title: 'Best-of-Q demonstration' }, context),
        );
    },
    argv,
  );
}
