/** train.js: embedded runs in, a model folder out. */

import { join } from 'node:path';
import Table from 'cli-table3';
import { Option } from 'commander';
import { BoqError } from '../core/errors.js';
import { type Backup, backups } from '../learning/backup.js';
import { hyperParameters, type Preset, parseHyperParameter, presets } from '../learning/hyper-parameters.js';
import { type OfflineReport, offlineTable } from '../learning/offline.js';
import { describePlan, train } from '../learning/train.js';
import { newestEmbeddedRun } from '../learning/training-data.js';
import type { NativeTrainSweep } from '../native/surface.js';
import { type CommandContext, listsOption, runCommand } from './command.js';
import { demonstrationRun } from './demonstration.js';
import { startProgress } from './progress.js';

type Setting = number | string | boolean | number[];

interface TrainFlags {
  data?: string[];
  out?: string;
  preset: Preset;
  device: string;
  resume?: boolean;
  labels?: string;
  backup?: Backup;
  startFrom?: string;
  seeds?: number;
  sweep?: NativeTrainSweep;
  json?: boolean;
}

const metricNames: Readonly<Record<string, string>> = {
  'loss/q': 'Q loss',
  'loss/v': 'V loss',
  'value/q_mean': 'mean Q',
  'value/v_mean': 'mean V',
};

export function main(argv: readonly string[]): Promise<number> {
  return runCommand(
    'train',
    'Trains Q and V by Implicit Q-Learning on embedded runs.',
    (command, { print, say, signal }) => {
      command
        .option(
          '--data <runs...>',
          'run or embedding folders, separated by commas or spaces (default: the run embedded last)',
          listsOption,
        )
        .option('--out <folder>', 'model folder (default: models/ and the time)')
        .addOption(
          new Option('--preset <name>', 'settings to start from; paper: to the letter')
            .choices(presets)
            .default('default'),
        )
        .option('--device <device>', 'auto, cpu or cuda:N', 'auto')
        .option('--resume', 'go on from the checkpoint in --out')
        .option('--start-from <model>', 'a model of the same networks whose weights training starts from')
        .option('--labels <file>', 'outcomes judged again, in place of the recorded ones')
        .addOption(
          new Option(
            '--backup <kind>',
            'learn besides from what was reached behind each action tried; for runs of explore.js',
          ).choices(backups),
        )
        .option('--seeds <n>', 'train as many models, with seeds one after the other', positiveInteger)
        .option(
          '--sweep <name=a,b,...>',
          'train a model for each value; repeatable; values that are lists are parted by /',
          addSweep,
        )
        .option('--json', 'print the result as JSON');
      const settings: Record<string, Setting> = {};
      for (const parameter of hyperParameters) {
        const flag = parameter.name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
        command.option(`--${flag} <value>`, parameter.help, (text: string) => {
          settings[parameter.name] = parseHyperParameter(parameter, text);
        });
      }
      command.action(async (flags: TrainFlags) => {
        const data = flags.data ?? [await defaultData({ say, signal }, flags.device)];
        const out = flags.out ?? join('models', new Date().toISOString().slice(0, 19).replace(/[-:]/g, ''));
        const bar = startProgress('Training', 0);
        try {
          const result = await train({
            data,
            out,
            preset: flags.preset,
            config: settings,
            device: flags.device,
            resume: flags.resume ?? false,
            ...(flags.labels !== undefined && { labels: flags.labels }),
            ...(flags.backup !== undefined && { backup: flags.backup }),
            ...(flags.startFrom !== undefined && { startFrom: flags.startFrom }),
            ...(flags.seeds !== undefined && { seeds: flags.seeds }),
            ...(flags.sweep !== undefined && { sweep: flags.sweep }),
            signal,
            onPlan: (plan) => {
              for (const line of describePlan(plan)) say(line);
            },
            onProgress: ({ step, steps, metrics }) => {
              bar.setTotal(steps);
              bar.update(step, metricsNote(metrics));
            },
          });
          bar.stop();
          const { summary } = result;
          if (flags.json) print(JSON.stringify(result));
          else {
            say(
              `${summary.stopped ? 'Stopped' : 'Done'} after ${summary.steps} steps, ${summary.seconds.toFixed(1)} s; ` +
                `${metricsNote(summary.metrics)}.`,
            );
            for (const { out: folder, offline } of result.models) {
              if (offline !== null && offline.transitions > 0) sayOffline(offline, say);
              print(folder);
            }
          }
          if (summary.stopped)
            throw new BoqError('BOQ_ABORTED', `training was stopped; go on with --resume --out ${out}`);
        } finally {
          bar.stop();
        }
      });
    },
    argv,
  );
}

function positiveInteger(text: string): number {
  const value = Number(text);
  if (!Number.isSafeInteger(value) || value < 1) {
    throw new BoqError(
      'BOQ_USAGE',
      `seeds must be a whole number of at least 1, not ${JSON.stringify(text)}`,
    );
  }
  return value;
}

/** name=a,b: the values of a hyper-parameter, written as its option or as its key in config.json. */
function addSweep(text: string, sweep: NativeTrainSweep = {}): NativeTrainSweep {
  const [option = '', values = ''] = text.split(/=(.*)/s);
  const name = option.replace(/-([a-z])/g, (_, letter: string) => letter.toUpperCase());
  const parameter = hyperParameters.find((each) => each.name === name);
  if (parameter === undefined || values === '') {
    throw new BoqError(
      'BOQ_USAGE',
      `--sweep takes name=value,value,... of a setting, not ${JSON.stringify(text)}`,
    );
  }
  const each = values.split(parameter.kind === 'integers' ? '/' : ',');
  return { ...sweep, [name]: each.map((value) => parseHyperParameter(parameter, value)) };
}

/** What held-out episodes say, beside what simpler predictors reach. */
function sayOffline(report: OfflineReport, say: (line: string) => void): void {
  const { head, rows, notes } = offlineTable(report);
  const table = new Table({
    head,
    style: { head: [], border: [] },
    colAligns: ['left', 'right', 'right', 'right', 'right'],
  });
  table.push(...rows);
  say(table.toString());
  for (const note of notes) say(note);
}

function metricsNote(metrics: Record<string, number>): string {
  return Object.entries(metricNames)
    .filter(([name]) => metrics[name] !== undefined)
    .map(([name, label]) => `${label} ${metrics[name]?.toPrecision(3)}`)
    .join(', ');
}

async function defaultData(context: Pick<CommandContext, 'say' | 'signal'>, device: string): Promise<string> {
  return (await newestEmbeddedRun('runs')) ?? demonstrationRun(context, device);
}
