/**
 * MiniWoB++: small seeded pages with a reward of their own, played from the file system. Protocol and conventions
 * are those of BrowserGym (viewport, success = raw reward above zero, the goal as text only), with one difference:
 * every episode loads its page afresh, so that the same seed gives the same episode.
 */
import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { ActionRegistry } from '../../agent/actions/registry.js';
import { PageEnvironment } from '../../agent/browser/environment.js';
import type { BrowserSession } from '../../agent/browser/session.js';
import type { Episode, Verdict } from '../../agent/types.js';
import { BoqError } from '../../core/errors.js';
import { miniwobFolder } from '../../core/setup-paths.js';
import type { Action, ActionResult, Point } from '../../store/types.js';
import { miniwobSets } from './miniwob-sets.js';
import { type Benchmark, resolveNames } from './types.js';

interface PageState {
  done: boolean;
  reward: number;
  /** False after the page was loaded again and its problem is gone. */
  started: boolean;
}

// Timers of the pages count real time; a model may think for minutes. Must stay below 2^31.
const episodeMs = 1_000_000_000;

// Reward, clock and cover would tell the agent how the episode went, and the goal is given as text. The cover's
// START button would begin another, unseeded episode.
const hiddenStyle = `
  #reward-display, #click-canvas { display: none !important; }
  #query { visibility: hidden !important; }
  #sync-task-cover { visibility: hidden !important; pointer-events: none !important; }`;

function startScript(seed: number): string {
  return `(async () => {
    if (!document.getElementById('boq-miniwob')) {
      const style = document.createElement('style');
      style.id = 'boq-miniwob';
      style.textContent = ${JSON.stringify(hiddenStyle)};
      document.head.append(style);
    }
    // The generator takes numbers and texts differently; a number is what others use.
    Math.seedrandom(${seed});
    core.EPISODE_MAX_TIME = ${episodeMs};
    core.startEpisodeReal();
    for (let frames = 0; !WOB_TASK_READY && frames < 300; frames++) await new Promise((done) => requestAnimationFrame(done));
    const goal = core.getUtterance();
    return { ready: WOB_TASK_READY, instruction: typeof goal === 'string' ? goal : goal.utterance };
  })()`;
}

const stateScript = `({
  done: Boolean(globalThis.WOB_DONE_GLOBAL),
  reward: Number(globalThis.WOB_RAW_REWARD_GLOBAL ?? 0),
  started: Boolean(globalThis.core && core.ept0 !== null),
})`;

// Compiled once: an episode is shorter than that takes.
const actions = new ActionRegistry();

class MiniwobEnvironment extends PageEnvironment {
  readonly #session: BrowserSession;
  readonly #seed: number;

  constructor(session: BrowserSession, seed: number) {
    super(session, actions, () => this.#judge());
    this.#session = session;
    this.#seed = seed;
  }

  override async act(action: Action, point: Point | null, signal?: AbortSignal): Promise<ActionResult> {
    const result = await super.act(action, point, signal);
    // Loading the page again brings back the same problem from its start.
    if (action.type === 'refresh' || action.type === 'restart') {
      const state = await this.#session.tab.evaluate<PageState>(stateScript);
      if (!state.started && !state.done) {
        await this.#session.tab.evaluate(startScript(this.#seed));
        await this.#session.settle();
      }
    }
    return result;
  }

  async #judge(): Promise<Verdict | null> {
    const state = await this.#session.tab.evaluate<PageState>(stateScript);
    if (!state.done) {
      // Only a page that has left the task has no running episode.
      return state.started ? null : { outcome: 'failure', rawReward: 0 };
    }
    return { outcome: state.reward > 0 ? 'success' : 'failure', rawReward: state.reward };
  }
}

export class Miniwob implements Benchmark {
  readonly name = 'miniwob';
  readonly defaults = { viewport: { width: 332, height: 214, deviceScaleFactor: 1 }, maxSteps: 10 };
  readonly #folder: string;
  #tasks: string[] | null = null;

  /** @param htmlFolder the `html` folder of the MiniWoB++ distribution. */
  constructor(htmlFolder: string = miniwobFolder) {
    this.#folder = htmlFolder;
  }

  /** Every page of the distribution. @throws BoqError BOQ_FILE_NOT_FOUND */
  get tasks(): string[] {
    if (this.#tasks) return this.#tasks;
    const folder = join(this.#folder, 'miniwob');
    if (!existsSync(folder)) {
      throw new BoqError(
        'BOQ_FILE_NOT_FOUND',
        `expected the MiniWoB++ pages in ${folder}, found no such folder; run \`node scripts/setup.js\``,
      );
    }
    this.#tasks = readdirSync(folder)
      .filter((name) => name.endsWith('.html'))
      .map((name) => name.slice(0, -'.html'.length))
      .sort();
    return this.#tasks;
  }

  resolveTasks(spec: readonly string[]): string[] {
    return resolveNames(this.name, spec, this.tasks, miniwobSets);
  }

  async openEpisode(session: BrowserSession, task: string, seed: number): Promise<Episode> {
    if (!Number.isSafeInteger(seed)) {
      throw new BoqError('BOQ_INVALID_ARGUMENT', `expected an integer seed for ${task}, got ${seed}`);
    }
    this.resolveTasks([task]);
    await session.setViewport(this.defaults.viewport);
    const startUrl = pathToFileURL(join(this.#folder, 'miniwob', `${task}.html`)).href;
    await session.begin(startUrl);
    const start = await session.tab.evaluate<{ ready: boolean; instruction: string }>(startScript(seed));
    if (!start.ready)
      throw new BoqError('BOQ_BROWSER', `expected ${task} with seed ${seed} to become ready, it did not`);
    await session.settle();
    return { instruction: start.instruction, startUrl, environment: new MiniwobEnvironment(session, seed) };
  }
}
