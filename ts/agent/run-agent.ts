/** The agent on a page of one's own: one task, one browser window, one run folder with the whole trace. */
import { BoqError } from '../core/errors.js';
import { gitCommit, packageVersion } from '../core/package.js';
import { randomSource } from '../core/random.js';
import { FolderRun } from '../store/run.js';
import type { Candidate, EpisodeKey, EpisodeRecord } from '../store/types.js';
import { ActionRegistry } from './actions/registry.js';
import { PageEnvironment } from './browser/environment.js';
import type { Secrets } from './browser/secrets.js';
import type { BrowserSession } from './browser/session.js';
import type { Budget } from './budget.js';
import type { EpisodeEvent, RunEpisodeOptions } from './episode.js';
import { createLocalizer } from './localizer/registry.js';
import { runEpisode } from './loop.js';
import { LoopGuard } from './loop-guard.js';
import { createPolicy, type VlmChoice } from './policy/registry.js';
import { createSelector } from './selectors/registry.js';
import type { Critic, Localizer, Observation, ProposeRequest, Proposer, Selector, Verdict } from './types.js';
import { AgentWindow, viewportOf, type WindowOptions } from './window.js';

/** One task for the agent. */
export interface AgentOptions extends WindowOptions {
  /** What is to be done, in words. */
  task: string;
  /** Run folder to write. */
  out: string;
  /** The task is done when the page shows this text; without it, it is done when the agent answers. */
  successText?: string;
  /** A policy's name, or one of your own. Default page. */
  policy?: string | Proposer;
  /** A localizer's name, e.g. `holo1.5,page`, or one of your own. Default page. */
  localizer?: string | Localizer;
  /** A selector's specification, or one of your own. Default best-of-q. */
  selector?: string | Selector;
  /** Where the models are, for parts that ask one; the environment says so where left out. */
  vlm?: VlmChoice;
  /** For selectors that need scores: the critic and the name of its generation. */
  model?: { critic: Critic; id: string };
  /** What the agent can do; default the paper's eight actions. Beyond them: `actionsWith('goto', 'press')`. */
  actions?: ActionRegistry;
  /** Candidates a step; default 3. */
  n?: number;
  /** Default 30. */
  maxSteps?: number;
  /** Milliseconds; default 10 minutes. */
  maxMs?: number;
  /** Seed of all draws; default 0. */
  seed?: number;
  /** Values that must not be written to the trace, beside those of `secrets`. */
  masked?: readonly string[];
  /** Times that one action may be taken in one state before the agent counts as stuck; default 4, 0 for no limit. */
  stuckAfter?: number;
  budget?: Budget;
  onLimit?: 'fail' | 'answer';
  signal?: AbortSignal;
  onEvent?: (event: EpisodeEvent) => void;
  beforeStep?: NonNullable<RunEpisodeOptions['beforeStep']>;
  beforeAction?: NonNullable<RunEpisodeOptions['beforeAction']>;
  afterStep?: NonNullable<RunEpisodeOptions['afterStep']>;
  confirm?: NonNullable<RunEpisodeOptions['confirm']>;
}

/** How the task ended, and where its trace lies. */
export interface AgentSummary {
  /** Absolute path of the run. */
  run: string;
  record: EpisodeRecord;
}

/**
 * Does one task.
 * @throws BOQ_USAGE, BOQ_BROWSER_NOT_FOUND, BOQ_BROWSER, BOQ_RUN_EXISTS, BOQ_FILE_WRITE, BOQ_VLM_*, BOQ_ABORTED
 */
export async function runAgent(options: AgentOptions): Promise<AgentSummary> {
  const {
    url,
    task,
    masked = [],
    seed = 0,
    n = 3,
    maxSteps = 30,
    maxMs = 600_000,
    model,
    stuckAfter = 4,
  } = options;
  const window = await AgentWindow.prepare(options);
  const { secrets } = window;
  const actions = options.actions ?? new ActionRegistry();
  const proposer = proposerOf(options, actions, secrets);
  const selector =
    typeof options.selector === 'object'
      ? options.selector
      : createSelector(options.selector ?? 'best-of-q', options.vlm);
  const { localizer: finder = 'page' } = options;
  const localizer = typeof finder === 'object' ? finder : createLocalizer(finder, options.vlm);
  if (selector.needsScores && !model) {
    throw new BoqError(
      'BOQ_USAGE',
      `The selector ${selector.name} needs a trained model: give one with --model, or choose --selector prompting.`,
    );
  }
  const critic = selector.needsScores && model ? model : null;
  const generation = critic?.id ?? 'none';
  const run = await FolderRun.create(
    options.out,
    {
      kind: 'agent',
      config: {
        url,
        task,
        successText: options.successText ?? null,
        policy: proposer.name,
        localizer: localizer.name,
        selector: selector.name,
        generation,
        ...{ n, maxSteps, maxMs, viewport: viewportOf(options) },
        actions: actions.types,
        allow: [...(options.allow ?? [])],
        deny: [...(options.deny ?? [])],
        allowPrivate: options.allowPrivate ?? false,
        onLimit: options.onLimit ?? 'fail',
      },
      seed,
      versions: { '@boq/native': await packageVersion(), node: process.versions.node },
      gitCommit: await gitCommit(),
    },
    { secrets: [...masked, ...secrets.values] },
  );
  const key: EpisodeKey = {
    benchmark: 'agent',
    task,
    seed,
    policy: proposer.name,
    selector: selector.name,
    generation,
    repeat: (await run.committed()).size,
  };
  return window.use(async (session) => {
    const judge = options.successText === undefined ? undefined : textJudge(session, options.successText);
    const environment = new PageEnvironment(session, actions, judge, { secrets });
    const attempt = await run.begin(key, { instruction: task, startUrl: url });
    try {
      const end = await runEpisode({
        episode: { instruction: task, startUrl: url, environment },
        ...{ proposer, selector, localizer, n },
        critic: critic?.critic ?? null,
        limits: { maxSteps, maxMs },
        random: (step, purpose) => randomSource([seed, task, key.repeat, step, purpose]),
        recorder: attempt,
        ...(stuckAfter > 0 ? { guard: new LoopGuard({ stopAfter: stuckAfter }) } : {}),
        ...definedOf(options, passedOn),
      });
      const { record } = await attempt.commit(end);
      return { run: run.folder, record };
    } finally {
      await attempt.abandon();
    }
  });
}

/** What the first step would ask and offer, with nothing carried out. */
export interface AgentPreview {
  /** What the page looks like to the agent. */
  observation: Observation;
  /** What a model would be sent; null for policies without one. */
  prompt: string | null;
  /** What a policy without a model would offer; empty for others, which are not asked. */
  candidates: Candidate[];
}

/**
 * Opens the page and shows what the policy would be asked, without asking a model or touching the page.
 * @throws BOQ_USAGE, BOQ_BROWSER_NOT_FOUND, BOQ_BROWSER, BOQ_ABORTED
 */
export async function previewAgent(options: Omit<AgentOptions, 'out'>): Promise<AgentPreview> {
  const { task, seed = 0, n = 3 } = options;
  const window = await AgentWindow.prepare(options);
  const { secrets } = window;
  const actions = options.actions ?? new ActionRegistry();
  const proposer = proposerOf(options, actions, secrets);
  return window.use(async (session) => {
    const environment = new PageEnvironment(session, actions, undefined, { secrets });
    const observation = await environment.observe(options.signal);
    const request: ProposeRequest = {
      instruction: task,
      history: [],
      observation,
      n,
      random: randomSource([seed, task, 0, 0, 'propose']),
    };
    if (proposer.preview) return { observation, prompt: proposer.preview(request), candidates: [] };
    const candidates: Candidate[] = [];
    for await (const event of proposer.propose(request)) {
      if (event.type === 'candidate') candidates.push(event.candidate);
    }
    return { observation, prompt: null, candidates };
  });
}

function proposerOf(
  { policy = 'page', vlm = {} }: Pick<AgentOptions, 'policy' | 'vlm'>,
  actions: ActionRegistry,
  secrets: Secrets,
): Proposer {
  return typeof policy === 'string'
    ? createPolicy(policy, { actions, secretNames: secrets.names, vlm })
    : policy;
}

/** Options that the loop takes as they are. */
const passedOn = [
  'budget',
  'onLimit',
  'signal',
  'onEvent',
  'beforeStep',
  'beforeAction',
  'afterStep',
  'confirm',
] as const satisfies readonly (keyof AgentOptions & keyof RunEpisodeOptions)[];

function definedOf<T extends object, K extends keyof T>(all: T, names: readonly K[]): Pick<T, K> {
  return Object.fromEntries(
    names.filter((name) => all[name] !== undefined).map((name) => [name, all[name]]),
  ) as Pick<T, K>;
}

/** Success as soon as the page shows the text. */
function textJudge(session: BrowserSession, text: string): () => Promise<Verdict | null> {
  const shows = `(document.body?.innerText ?? '').includes(${JSON.stringify(text)})`;
  return async () => {
    // A page that crashed shows nothing; the next observation loads it again.
    if (session.crashed) return null;
    const isShown = await session.tab.evaluate<boolean>(shows);
    return isShown ? { outcome: 'success', rawReward: null } : null;
  };
}
