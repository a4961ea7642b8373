/** study.js: a declared experiment, from its first episode to its report. */
import { findStudy, studyNames } from '../evaluation/studies/index.js';
import { integerOption, runCommand } from './command.js';
import { conduct } from './experiment.js';

interface StudyFlags {
  name?: string;
  embedder?: string;
  workers: number;
}

export function main(argv: readonly string[]): Promise<number> {
  return runCommand(
    'study',
    'Repeats a study of docs/benchmarks from its first episode. Run again, it goes on where it stopped.',
    (command, context) => {
      command
        .argument('<study>', studyNames.join(', '))
        .option('--name <name>', "folders: runs/NAME-*, models/NAME-* (default: the study's name)")
        .option(
          '--embedder <checkpoint>',
          'checkpoint folder or Hugging Face id (default: the built-in random one)',
        )
        .option('--workers <count>', 'episodes at a time, all in one browser', integerOption(1), 6)
        .action((study: string, { name = study, ...flags }: StudyFlags) =>
          conduct(findStudy(study), { ...flags, name, title: `Study ${study}` }, context),
        );
    },
    argv,
  );
}
