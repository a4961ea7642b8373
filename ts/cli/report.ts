/** report.js: runs and models in, one HTML file out, the tables on stdout. */

import { comparisonTable } from '../report/terminal.js';
import { writeReport } from '../report/write.js';
import { integerOption, runCommand } from './command.js';

interface ReportFlags {
  out: string;
  title?: string;
  examples: number;
  json?: boolean;
}

export function main(argv: readonly string[]): Promise<number> {
  return runCommand(
    'report',
    'Writes one self-contained HTML page about evaluated runs, collected runs and models.',
    (command, { print, say }) => {
      command
        .argument('<folders...>', 'run and model folders, in any order')
        .option('--out <file>', 'the page to write', 'report.html')
        .option('--title <text>', 'its title')
        .option('--examples <count>', 'episodes shown step by step for each evaluation', integerOption(0), 4)
        .option('--json', 'print the figures as JSON instead of tables')
        .action(async (folders: string[], flags: ReportFlags) => {
          const { path, bytes, data } = await writeReport({
            paths: folders,
            out: flags.out,
            examples: flags.examples,
            ...(flags.title === undefined ? {} : { title: flags.title }),
          });
          if (flags.json) {
            print(JSON.stringify({ report: path, bytes, evaluations: data.evaluations }));
          } else {
            const color = process.stdout.hasColors?.() ?? false;
            for (const evaluation of data.evaluations) print(`${comparisonTable(evaluation, { color })}\n`);
            print(path);
          }
          say(`Report written, ${(bytes / 1e6).toFixed(1)} MB.`);
        });
    },
    argv,
  );
}
