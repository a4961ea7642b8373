/** headroom.js: what one other choice would have changed, and how much of that a model finds, without a browser. */
import { basename } from 'node:path';
import Table from 'cli-table3';
import { chooseAbove } from '../agent/selectors/best-of-q.js';
import { bounds, type Course, deviate, missed, readCourses, scoreCourses } from '../evaluation/headroom.js';
import { ModelSet } from '../evaluation/models.js';
import { type EvaluationRow, summarizeSelectors } from '../evaluation/summary.js';
import { describeAction } from '../learning/templates.js';
import { interval, percent, points } from '../report/format.js';
import { openRun } from '../store/run.js';
import type { StepScores } from '../store/types.js';
import { findCheckpoint } from './checkpoint.js';
import { listOption, runCommand } from './command.js';

interface HeadroomFlags {
  model: string[];
  margins: string[];
  pessimism: string[];
  rescue: string;
  embedder?: string;
  device: string;
  list?: boolean;
  json?: boolean;
}

/** A model's values of every state. */
interface Judged {
  model: string;
  scores: StepScores[][];
}

/** The folder's own name where no other model has it too. */
function shortName(folder: string, all: readonly string[]): string {
  const name = basename(folder);
  return all.filter((other) => basename(other) === name).length > 1 ? folder : name;
}

/** What the room is made of, state by state. */
function listOf(courses: readonly Course[], judged: readonly Judged[]): string {
  return missed(courses)
    .map(({ course, fork, index }) => {
      const { key, instruction } = course.record;
      const table = new Table({
        head: ['candidate', 'thought', 'outcome', ...judged.map(({ model }) => `Q, ${model}`)],
        colWidths: [44, 50],
        wordWrap: true,
        style: { head: [], border: [] },
      });
      const place = courses.indexOf(course);
      for (const [at, { action, thought }] of fork.step.candidates.entries()) {
        const outcome = { true: 'success', false: 'failure', null: 'not tried' }[String(fork.outcomes[at])];
        const values = judged.map(({ scores }) => scores[place]![index]!.q[at]!.toFixed(3));
        table.push([describeAction(action), thought, outcome, ...values]);
      }
      return `${key.task}, seed ${key.seed}, step ${index + 1}: ${instruction}\n${table.toString()}\n`;
    })
    .join('\n');
}

export function main(argv: readonly string[]): Promise<number> {
  return runCommand(
    'headroom',
    'Judges models on a run that explore.js made with the roll-outs of a policy: success of the policy, of the best that ' +
      'one other choice could have reached, and of each model at each margin, by the episode that follows where it first ' +
      'leaves the policy. No browser is needed, so that many models can be compared on the same episodes.',
    (command, context) => {
      command
        .argument('<run>', 'a run of explore.js')
        .option('--model <folders>', 'trained models, separated by commas', listOption, [])
        .option('--margins <numbers>', 'override margins', listOption, [
          '0',
          '0.05',
          '0.1',
          '0.2',
          '0.3',
          '0.5',
        ])
        .option('--pessimism <numbers>', 'standard deviations over heads to subtract', listOption, ['0'])
        .option(
          '--rescue <share>',
          'leave a first worth less than this share of the best, as best-of-q does',
          '0',
        )
        .option('--embedder <checkpoint>', 'what the models were embedded with (default: the built-in one)')
        .option('--device <device>', 'auto, cpu or cuda:N', 'auto')
        .option(
          '--list',
          'show each state in which another candidate would have won, and what the models think of it',
        )
        .option('--json', 'print the figures as JSON')
        .action(async (path: string, flags: HeadroomFlags) => {
          const run = await openRun(path);
          const courses = await readCourses(run);
          const { policy, oracle } = bounds(courses);
          const rows: EvaluationRow[] = [...policy, ...oracle];
          const notes = new Map<string, { overrides: number; unknown: number }>();
          await using models = new ModelSet({
            embedder: await findCheckpoint(flags.embedder),
            device: flags.device,
          });
          const judged: Judged[] = [];
          for (const folder of flags.model) {
            const { critic } = await models.open(folder);
            const scores = await scoreCourses(run, courses, critic);
            const model = shortName(folder, flags.model);
            judged.push({ model, scores });
            for (const k of flags.pessimism.map(Number)) {
              for (const margin of flags.margins.map(Number)) {
                const label = `${model}${k > 0 ? `, k ${k}` : ''}, margin ${margin}`;
                const found = deviate(
                  label,
                  courses,
                  scores,
                  ({ q, spread }) =>
                    chooseAbove(
                      q.map((value, index) => value - k * spread[index]!),
                      'Q',
                      margin,
                      Number(flags.rescue),
                    ).index,
                );
                rows.push(...found.rows);
                notes.set(label, found);
              }
            }
          }
          const summaries = summarizeSelectors(rows, { estimand: 'unseen-tasks', baseline: 'policy' });
          if (flags.json) {
            context.print(JSON.stringify(summaries));
            return;
          }
          if (flags.list) context.print(listOf(courses, judged));
          const room = summaries['oracle']!.difference ?? 0;
          const table = new Table({
            head: ['', 'success', 'to policy', 'share of room', '95 %, tasks', 'overrides', 'unknown'],
            style: { head: [], border: [] },
          });
          for (const [label, one] of Object.entries(summaries)) {
            const { overrides, unknown } = notes.get(label) ?? { overrides: '', unknown: '' };
            const share = one.difference === null || room === 0 ? '' : percent(one.difference / room, 0);
            table.push([
              ...[label, percent(one.successRate), points(one.difference), share],
              ...[interval(one.intervals?.clustered ?? null), overrides, unknown],
            ]);
          }
          context.print(`${courses.length} task instances in ${run.folder}\n${table.toString()}`);
        });
    },
    argv,
  );
}
