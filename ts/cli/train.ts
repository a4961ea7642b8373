/** train.js: embedded runs in, a model folder out. */

import { join } from 'node:path';
import { Option } from 'commander';
import { BoqError } from '../core/errors.js';
import { hyperParameters, type Preset, parseHyperParameter, presets } from '../learning/hyper-parameters.js';
import { describePlan, train } from '../learning/train.js';
import { newestEmbeddedRun } from '../learning/training-data.js';
import { type CommandContext, runCommand } from './command.js';
import { demonstrationRun } from './demonstration.js';
import { startProgress } from './progress.js';

interface TrainFlags {
  data?: string[];
  out?: string;
  preset: Preset;
  device: string;
  resume?: boolean;
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
        .option('--data <runs...>', 'run or embedding folders (default: the run embedded last)')
        .option('--out <folder>', 'model folder (default: models/ and the time)')
        .addOption(
          new Option('--preset <name>', 'settings to start from; paper: to the letter')
            .choices(presets)
            .default('default'),
        )
        .option('--device <device>', 'auto, cpu or cuda:N', 'auto')
        .option('--resume', 'go on from the checkpoint in --out')
        .option('--json', 'print the result as JSON');
      const settings: Record<string, number | string | boolean | number[]> = {};
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
            print(out);
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

function metricsNote(metrics: Record<string, number>): string {
  return Object.entries(metricNames)
    .filter(([name]) => metrics[name] !== undefined)
    .map(([name, label]) => `${label} ${metrics[name]?.toPrecision(3)}`)
    .join(', ');
}

async function defaultData(context: Pick<CommandContext, 'say' | 'signal'>, device: string): Promise<string> {
  return (await newestEmbeddedRun('runs')) ?? demonstrationRun(context, device);
}
