/** evaluate.js: selectors side by side on the same tasks and seeds. */
import Table from 'cli-table3';
import { InvalidArgumentError } from 'commander';
import { type EvaluatedWith, evaluate } from '../evaluation/evaluate.js';
import { constantModel, ModelSet } from '../evaluation/models.js';
import type { Results } from '../evaluation/results.js';
import { successNote } from '../evaluation/runner.js';
import type { SeedRange } from '../evaluation/stage.js';
import type { Estimand } from '../evaluation/summary.js';
import { findCheckpoint } from './checkpoint.js';
import { integerOption, listOption, rangeOption, runCommand } from './command.js';
import { addCacheOptions, type CacheFlags, openCache } from './embedding-cache.js';
import { addEpisodeOptions, type EpisodeFlags, episodeOptions, reportFaults } from './episode-options.js';
import { stageBars } from './progress.js';
import { budgetOf, reportBudget, withinBudget } from './vlm-options.js';

interface EvaluateFlags extends EpisodeFlags, CacheFlags {
  selectors: string[];
  model: string[];
  control: { name: string; path: string | null }[];
  embedder?: string;
  device: string;
  margin?: string;
  heldOut?: boolean;
  baseline?: string;
  estimand?: Estimand;
  validationTasks?: string[];
  validationSeeds?: SeedRange;
  validationRepeats?: number;
  marginGrid?: number[];
}

export function main(argv: readonly string[]): Promise<number> {
  return runCommand(
    'evaluate',
    'Plays the same tasks and seeds with several selectors and compares them: results.json, and one row an episode ' +
      'in results.csv. Run again with the same options, it goes on where it stopped.',
    (command, context) => {
      addCacheOptions(addEpisodeOptions(command))
        .requiredOption('--selectors <names>', 'e.g. prompting,random,best-of-q,recommended', listOption)
        .option('--model <folders>', 'trained models; several are trainings of one method', listOption, [])
        .option(
          '--control <name[=folder]>',
          'a model that should gain nothing, compared as well; without a folder: equal values for all. Repeatable',
          controlOption,
          [],
        )
        .option('--held-out', 'each model meets only tasks that it was not trained on')
        .option('--margin <value>', 'margin of every best-of-q that names none: a number, or auto')
        .option('--embedder <checkpoint>', 'what the models were embedded with (default: the built-in one)')
        .option('--device <device>', 'auto, cpu or cuda:N', 'auto')
        .option('--baseline <selector>', 'what the others are compared with (default: prompting)')
        .option(
          '--estimand <name>',
          'unseen-seeds or unseen-tasks (default: by what training saw)',
          estimandOption,
        )
        .option(
          '--validation-tasks <names>',
          'tasks to choose margins on (default: those evaluated)',
          listOption,
        )
        .option(
          '--validation-seeds <range>',
          'seeds to choose margins on (default: 10000-10009)',
          rangeOption,
        )
        .option('--validation-repeats <count>', 'episodes of each of them', integerOption(1))
        .option('--margin-grid <numbers>', 'margins to choose from', gridOption)
        .action(async (flags: EvaluateFlags) => {
          const episodes = episodeOptions(flags, context);
          const budget = budgetOf(flags, episodes.vlm);
          const bars = stageBars(flags.quiet ?? false);
          const embedder = await checkpointFor(flags);
          await using cache = embedder === '' ? null : await openCache(flags);
          await using models = new ModelSet({
            embedder,
            device: flags.device,
            ...(cache === null ? {} : { cache }),
          });
          try {
            const { run, results, faults, seconds } = await evaluate({
              ...episodes,
              ...withinBudget(budget),
              out: flags.out,
              selectors: withMargin(flags.selectors, flags.margin),
              models: await openModels(models, flags),
              heldOut: flags.heldOut ?? false,
              ...(flags.baseline === undefined ? {} : { baseline: flags.baseline }),
              ...(flags.estimand === undefined ? {} : { estimand: flags.estimand }),
              validation: {
                ...(flags.validationTasks ? { tasks: flags.validationTasks } : {}),
                ...(flags.validationSeeds ? { seeds: flags.validationSeeds } : {}),
                ...(flags.validationRepeats ? { repeats: flags.validationRepeats } : {}),
                ...(flags.marginGrid ? { grid: flags.marginGrid } : {}),
              },
              signal: context.signal,
              onProgress: (progress) =>
                bars.show(progress.stage, progress.total, progress.done, successNote(progress)),
            });
            bars.stop();
            if (flags.json) context.print(JSON.stringify({ run, seconds, faults: faults.length, results }));
            else if (results) context.print(`${resultsTable(results)}\n${run}`);
            for (const { label, chosenMargin } of results?.entries ?? []) {
              if (chosenMargin !== null) context.say(`${label}: margin ${chosenMargin} was chosen.`);
            }
            reportFaults(faults, context);
            if (!results && faults.length === 0) reportBudget(budget, context);
          } finally {
            bars.stop();
          }
        });
    },
    argv,
  );
}

async function openModels(set: ModelSet, { model, control }: EvaluateFlags): Promise<EvaluatedWith[]> {
  const opened: EvaluatedWith[] = [];
  for (const path of model) opened.push({ ...(await set.open(path)), control: null });
  for (const { name, path } of control) {
    const one = path === null ? constantModel() : await set.open(path);
    opened.push({ ...one, control: name });
  }
  return opened;
}

/** The checkpoint is looked for only where a model will need it. */
async function checkpointFor({ model, control, embedder }: EvaluateFlags): Promise<string> {
  const isNeeded = model.length > 0 || control.some(({ path }) => path !== null);
  return isNeeded ? findCheckpoint(embedder) : '';
}

/** `--margin` says what a plain best-of-q means. */
function withMargin(selectors: readonly string[], margin: string | undefined): string[] {
  if (margin === undefined) return [...selectors];
  return selectors.map((text) => (text === 'best-of-q' ? `${text}@margin=${margin}` : text));
}

function resultsTable({ selectors, baseline, estimand }: Results): string {
  const table = new Table({
    head: ['selector', 'episodes', 'success', 'std error', 'steps', `minus ${baseline}`, `95 %, ${estimand}`],
    style: { head: [], border: [] },
  });
  const signed = (value: number): string => `${value >= 0 ? '+' : ''}${(100 * value).toFixed(1)}`;
  for (const [name, one] of Object.entries(selectors)) {
    table.push([
      name,
      one.episodes,
      one.successRate.toFixed(3),
      one.standardErrorEpisodes?.toFixed(3) ?? '',
      one.meanStepsOnSuccess?.toFixed(2) ?? '',
      one.difference === null ? '' : signed(one.difference),
      one.interval === null ? '' : `[${one.interval.map(signed).join(', ')}]`,
    ]);
  }
  return table.toString();
}

function controlOption(
  text: string,
  before: { name: string; path: string | null }[],
): { name: string; path: string | null }[] {
  const [name = '', path] = text.split('=', 2);
  if (!name || path === '') throw new InvalidArgumentError('Expected NAME or NAME=FOLDER.');
  return [...before, { name, path: path ?? null }];
}

function gridOption(text: string): number[] {
  return listOption(text).map((word) => {
    const value = Number(word);
    if (!(value >= 0)) throw new InvalidArgumentError(`Expected margins of at least 0, got "${word}".`);
    return value;
  });
}

function estimandOption(text: string): Estimand {
  if (text === 'unseen-seeds' || text === 'unseen-tasks') return text;
  throw new InvalidArgumentError('Expected unseen-seeds or unseen-tasks.');
}
