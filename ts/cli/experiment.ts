/** What demo.js and study.js share: an experiment with progress bars, its tables and its report. */
import { join } from 'node:path';
import type { Experiment } from '../evaluation/experiment.js';
import { runExperiment } from '../evaluation/run-experiment.js';
import { confirm } from '../report/confirmation.js';
import { loadComparisons } from '../report/load.js';
import { comparisonTable, confirmationTable } from '../report/terminal.js';
import { writeReport } from '../report/write.js';
import { findCheckpoint } from './checkpoint.js';
import type { CommandContext } from './command.js';
import { reportFaults } from './episode-options.js';
import { type Progress, startProgress } from './progress.js';

export interface ExperimentFlags {
  name: string;
  embedder?: string;
  workers: number;
  title: string;
}

export async function conduct(
  experiment: Experiment,
  { name, embedder, workers, title }: ExperimentFlags,
  context: CommandContext,
): Promise<void> {
  const started = performance.now();
  let bar: Progress | undefined;
  let current = '';
  let runs: string[];
  try {
    const result = await runExperiment(experiment, {
      name,
      workers,
      embedder: await findCheckpoint(embedder),
      signal: context.signal,
      onProgress: ({ stage, done, total, note }) => {
        if (stage !== current) {
          bar?.stop();
          bar = startProgress(stage, total);
          current = stage;
        }
        bar?.setTotal(total);
        bar?.update(done, note);
      },
    });
    bar?.stop();
    reportFaults(result.faults, context);
    if (result.faults.length > 0) return;
    runs = result.runs;
  } finally {
    bar?.stop();
  }
  const report = await writeReport({ paths: runs, out: join('runs', `${name}-report.html`), title });
  const color = process.stdout.hasColors?.() ?? false;
  for (const evaluation of report.data.evaluations) {
    context.print(`\n${comparisonTable(evaluation, { color })}`);
  }
  if (experiment.confirmation) {
    const tested = confirm(name, await loadComparisons(runs), experiment.confirmation);
    context.print(`\nDeclared before these seeds were played, ${tested.length} comparisons:`);
    context.print(confirmationTable(tested));
  }
  context.say(`\n${((performance.now() - started) / 60_000).toFixed(1)} minutes. The report:`);
  context.print(report.path);
}
