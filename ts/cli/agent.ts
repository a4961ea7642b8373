/** agent.js: the agent does one task on a page and shows what it considers. */
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { Option } from 'commander';
import { actionsWith } from '../agent/actions/registry.js';
import type { VlmChoice } from '../agent/policy/registry.js';
import { type AgentOptions, previewAgent, runAgent } from '../agent/run-agent.js';
import { createSelector, parseSelectorSpec } from '../agent/selectors/registry.js';
import type { WindowOptions } from '../agent/window.js';
import { BoqError } from '../core/errors.js';
import { packageRoot } from '../core/setup-paths.js';
import { keptMargin } from '../evaluation/margin.js';
import { ModelSet, newestModel, type OpenModel } from '../evaluation/models.js';
import { describeAction } from '../learning/templates.js';
import { askForStep, askToConfirm, jsonEvents, liveView } from './agent-view.js';
import { addWindowOptions, type WindowFlags, windowOptions } from './agent-window.js';
import { findCheckpoint } from './checkpoint.js';
import { type CommandContext, integerOption, listOption, runCommand } from './command.js';
import { demonstrationModel } from './demonstration.js';
import { addCacheOptions, type CacheFlags, openCache } from './embedding-cache.js';
import { addVlmOptions, budgetOf, keysOf, type VlmFlags, vlmChoice } from './vlm-options.js';

interface AgentFlags extends WindowFlags, VlmFlags, CacheFlags {
  url?: string;
  task?: string;
  successText?: string;
  n: number;
  selector: string;
  model?: string;
  embedder?: string;
  device: string;
  steps: number;
  seconds: number;
  seed: number;
  out?: string;
  actions?: string[];
  step?: boolean;
  confirm: 'ask' | 'deny' | 'allow';
  dryRun?: boolean;
  onLimit: 'fail' | 'answer';
  json?: boolean;
  quiet?: boolean;
}

/** A page and a task for those who give none. */
const demonstration = {
  url: pathToFileURL(join(packageRoot, 'examples', 'pages', 'tea-shop.html')).href,
  task: 'Select Green tea and Lemon, enter "Ada" into the field Name, and click Order.',
  successText: 'Thank you, Ada: Green tea, Lemon.',
};

export function main(argv: readonly string[]): Promise<number> {
  return runCommand(
    'agent',
    'Does one task on a web page: offers candidates at each step, and takes the one with the highest Q. Without --url ' +
      'and --task it does a small order on a page of this package.',
    (command, context) => {
      command
        .option('--url <address>', 'where the task begins')
        .option('--task <words>', 'what is to be done')
        .option(
          '--success-text <text>',
          'the task is done when the page shows this (default: when it answers)',
        )
        .option('--n <count>', 'candidates a step', integerOption(1), 3)
        .option(
          '--selector <name>',
          'how one is chosen: recommended takes the margin kept with the model, best-of-q is the plain rule, prompting the first',
          'recommended',
        )
        .option('--model <folder>', 'trained model (default: the newest below models/)')
        .option('--embedder <checkpoint>', 'what the model was embedded with (default: the built-in one)')
        .option('--device <device>', 'auto, cpu or cuda:N', 'auto')
        .option('--steps <count>', 'steps it may take', integerOption(1), 30)
        .option('--seconds <count>', 'seconds it may take', integerOption(1), 600)
        .option('--seed <integer>', 'seed of all draws', integerOption(0), 0)
        .option('--out <folder>', 'run folder for the trace (default: runs/agent- and the time)')
        .option(
          '--actions <names>',
          'beyond the usual eight: goto, press, hover, drag, select, switch_tab',
          listOption,
        )
        .option('--step', 'ask before each action')
        .addOption(
          new Option(
            '--confirm <what>',
            'before pressing what pays, deletes or sends: ask here, deny, or allow',
          )
            .choices(['ask', 'deny', 'allow'])
            .default('allow'),
        )
        .option('--dry-run', 'open the page, print what the policy would be asked, and do nothing')
        .addOption(
          new Option('--on-limit <what>', 'at a limit: fail, or ask for one last answer')
            .choices(['fail', 'answer'])
            .default('fail'),
        )
        .option('--json', 'print each step and the outcome as lines of JSON')
        .option('--quiet', 'print the outcome only');
      addCacheOptions(addVlmOptions(addWindowOptions(command))).action(async (flags: AgentFlags) => {
        const { url, task, successText } = goal(flags);
        const window = await windowOptions(flags);
        const actions = actionsWith(...(flags.actions ?? []));
        const vlm = vlmChoice(flags, context);
        if (flags.dryRun) return preview({ url, task, ...window, actions, vlm }, flags, context);
        const embedder = await checkpointFor(flags, vlm);
        await using cache = embedder === '' ? null : await openCache(flags);
        await using models = new ModelSet({
          embedder,
          device: flags.device,
          ...(cache === null ? {} : { cache }),
        });
        const model = await openModel(models, flags, vlm, context);
        const { run, record } = await runAgent({
          url,
          task,
          ...(successText === undefined ? {} : { successText }),
          out:
            flags.out ?? join('runs', `agent-${new Date().toISOString().slice(0, 19).replace(/[-:]/g, '')}`),
          ...{ policy: flags.policy, localizer: flags.localizer, vlm, masked: keysOf(vlm) },
          selector: await withKeptMargin(flags.selector, model, context),
          ...(model ? { model } : {}),
          n: flags.n,
          maxSteps: flags.steps,
          maxMs: flags.seconds * 1000,
          seed: flags.seed,
          onLimit: flags.onLimit,
          budget: budgetOf(flags, vlm),
          ...{ ...window, actions },
          signal: context.signal,
          onEvent: flags.quiet ? () => {} : flags.json ? jsonEvents(context) : liveView(context),
          ...(flags.step ? { beforeAction: (candidate) => askForStep(candidate, context.signal) } : {}),
          ...(flags.confirm === 'ask' ? { confirm: askToConfirm } : {}),
          ...(flags.confirm === 'deny' ? { confirm: async () => false } : {}),
        });
        const { outcome, steps, answer } = record;
        if (flags.json) context.print(JSON.stringify({ type: 'outcome', outcome, steps, answer, run }));
        else {
          const words = answer === null ? '' : `, answer: ${answer}`;
          context.print(`${outcome} after ${steps} steps${words}\n${run}`);
        }
      });
    },
    argv,
  );
}

function goal({ url, task, successText }: AgentFlags): { url: string; task: string; successText?: string } {
  if (url === undefined && task === undefined && successText === undefined) return demonstration;
  if (url === undefined || task === undefined) {
    throw new BoqError('BOQ_USAGE', 'Expected --url and --task together: where to begin, and what to do.');
  }
  const address = URL.canParse(url) ? url : `https://${url}`;
  if (!URL.canParse(address)) throw new BoqError('BOQ_USAGE', `Expected an address for --url, got "${url}".`);
  return { url: address, task, ...(successText === undefined ? {} : { successText }) };
}

/** What would be asked about the first step. */
async function preview(
  where: Pick<AgentOptions, 'url' | 'task' | 'actions' | 'vlm' | keyof WindowOptions>,
  { policy, n, seed, json }: AgentFlags,
  { print, signal }: CommandContext,
): Promise<void> {
  const { observation, prompt, candidates } = await previewAgent({
    ...where,
    ...{ policy, n, seed, signal },
  });
  if (json) {
    const { screenshot, ...seen } = observation;
    print(JSON.stringify({ observation: seen, prompt, candidates }));
    return;
  }
  print(`${observation.title} (${observation.url}), ${observation.elements.length} elements`);
  if (prompt !== null) print(prompt);
  else {
    print(`The policy ${policy} asks no model. It would offer:`);
    for (const { action, thought } of candidates) print(`  ${describeAction(action)}  (${thought})`);
  }
}

function needsModel({ selector }: Pick<AgentFlags, 'selector'>, vlm: VlmChoice): boolean {
  const spec = parseSelectorSpec(selector);
  return spec.settings['margin'] === 'auto' || createSelector(spec, vlm).needsScores;
}

/** Puts the margin that was chosen for the model in the place of `auto`; the plain rule where none was. */
async function withKeptMargin(
  selector: string,
  model: OpenModel | null,
  { say }: CommandContext,
): Promise<string> {
  const { rule, settings } = parseSelectorSpec(selector);
  if (settings['margin'] !== 'auto') return selector;
  const { name: method } = createSelector({ rule, settings: { ...settings, margin: '0' } });
  const margin = model?.folder ? await keptMargin(model.folder, method) : null;
  say(
    margin === null
      ? 'No margin was chosen for this model yet (evaluate.js --margin auto does): the highest Q is taken.'
      : `The first candidate is left for a gain in Q above ${margin}.`,
  );
  return createSelector({ rule, settings: { ...settings, margin: String(margin ?? 0) } }).name;
}

async function checkpointFor(flags: AgentFlags, vlm: VlmChoice): Promise<string> {
  return needsModel(flags, vlm) ? findCheckpoint(flags.embedder) : '';
}

async function openModel(
  set: ModelSet,
  flags: AgentFlags,
  vlm: VlmChoice,
  context: CommandContext,
): Promise<OpenModel | null> {
  if (!needsModel(flags, vlm)) return null;
  const path =
    flags.model ?? (await newestModel('models')) ?? (await demonstrationModel(context, flags.device));
  context.say(`Model: ${path}.`);
  return set.open(path);
}
