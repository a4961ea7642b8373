import type { Candidate, Usage } from '../../../store/types.js';
import type { Critic, Episode, HistoryEntry, Observation } from '../../types.js';
import { actionKey, type PlayContext, type Rule, scored } from '../method.js';
import { type ReplayStep, replayThen, stateSignature } from '../replay.js';

export interface SearchSettings {
  /** Actions that a path may look ahead. 1: every candidate is judged by V of the state that it leads to. */
  depth: number;
  /** Candidates tried in one state. */
  width: number;
  /** Actions that may be tried before each decision. */
  budget: number;
}

interface Node {
  /** From the start of the episode. */
  path: ReplayStep[];
  history: HistoryEntry[];
  /** V of the state, or Q of the last action where that ended the task. */
  value: number;
  depth: number;
  isEnd: boolean;
  signature: string;
}

/**
 * Best-first tree search by reset and replay (after arXiv 2407.01476, with V in place of a prompted judge): from the
 * present state the most valued node is expanded first, until `budget` actions are tried or the task is over on the
 * best path; then that path is taken, and the search begins again at its end. Only whether the task has ended is
 * looked at, never how.
 */
export function search({ depth, width, budget }: SearchSettings): Rule {
  return {
    name: `search@depth=${depth}&width=${width}&budget=${budget}`,
    needsScores: true,
    player: (inner) => async (context, selector) => {
      const explorer = new Explorer(context, { depth, width, budget });
      const script = await explorer.plan();
      const episode = await context.reset();
      const replay = replayThen(script, context.proposer, scored(selector));
      return inner({ ...context, episode, proposer: replay.proposer }, replay.selector);
    },
  };
}

class Explorer {
  readonly #context: PlayContext;
  readonly #critic: Critic;
  readonly #settings: SearchSettings;
  /** The episode as it stands after the last replay, and where it stands. */
  #episode: Episode;
  #standing: string | null = '[]';
  readonly #usage: Usage[] = [];

  constructor(context: PlayContext, settings: SearchSettings) {
    this.#context = context;
    this.#critic = context.critic!;
    this.#settings = settings;
    this.#episode = context.episode;
  }

  /** All actions of the episode, decided by search after search. */
  async plan(): Promise<ReplayStep[]> {
    const { limits, signal } = this.#context;
    let here: Node = {
      ...{ path: [], history: [], value: 0, depth: 0, isEnd: false },
      signature: stateSignature(await this.#episode.environment.observe(signal)),
    };
    while (!here.isEnd && here.path.length < limits.maxSteps) {
      const next = await this.#search(here);
      if (next === null) break;
      here = { ...next, depth: 0 };
    }
    const [first, ...rest] = here.path;
    return first ? [{ ...first, usage: this.#usage }, ...rest] : [];
  }

  /** The best node that a search from `root` finds; null where no action leads anywhere. */
  async #search(root: Node): Promise<Node | null> {
    const { depth, budget } = this.#settings;
    const { limits } = this.#context;
    const frontier = [root];
    let best: Node | null = null;
    let tried = 0;
    while (frontier.length > 0 && tried < budget) {
      frontier.sort((a, b) => b.value - a.value);
      const node = frontier.shift()!;
      const children = await this.#expand(node, budget - tried);
      tried += Math.max(1, children.length);
      for (const child of children) {
        if (best === null || child.value > best.value) best = child;
        const mayGoOn = !child.isEnd && child.depth < depth && child.path.length < limits.maxSteps;
        if (mayGoOn) frontier.push(child);
      }
      if (best?.isEnd && frontier.every(({ value }) => value <= best!.value)) break;
    }
    return best;
  }

  async #expand(node: Node, allowed: number): Promise<Node[]> {
    const observation = await this.#standAt(node);
    if (observation === null) return [];
    const candidates = await this.#propose(node, observation);
    if (candidates.length === 0) return [];
    const { q } = await this.#score(node.history, observation, candidates);
    const children: Node[] = [];
    for (const [index, candidate] of candidates.entries()) {
      if (children.length >= allowed) break;
      if (index > 0 && (await this.#standAt(node)) === null) break;
      const step: ReplayStep = { candidates, index, signature: node.signature };
      children.push(await this.#try(node, step, candidate, q[index]!));
    }
    return children;
  }

  async #try(node: Node, step: ReplayStep, candidate: Candidate, q: number): Promise<Node> {
    const { signal } = this.#context;
    const { entry, isEnd } = await this.#act(candidate);
    const path = [...node.path, step];
    const history = [...node.history, entry];
    this.#standing = keyOf(path);
    if (isEnd) return { path, history, value: q, depth: node.depth + 1, isEnd, signature: '' };
    const observation = await this.#episode.environment.observe(signal);
    const { v } = await this.#score(history, observation, []);
    return { path, history, value: v, depth: node.depth + 1, isEnd, signature: stateSignature(observation) };
  }

  /** Brings the episode to the node's state; null where the page did not come out the same. */
  async #standAt({ path, signature }: Node): Promise<Observation | null> {
    const { environment } = this.#episode;
    if (this.#standing !== keyOf(path)) {
      this.#episode = await this.#context.reset();
      this.#standing = '[]';
      for (const { candidates, index } of path) {
        const { isEnd } = await this.#act(candidates[index]!);
        if (isEnd) return this.#lose();
      }
      this.#standing = keyOf(path);
      const observation = await this.#episode.environment.observe(this.#context.signal);
      return stateSignature(observation) === signature ? observation : this.#lose();
    }
    return environment.observe(this.#context.signal);
  }

  #lose(): null {
    this.#standing = null;
    return null;
  }

  async #act({ action, thought, note }: Candidate): Promise<{ entry: HistoryEntry; isEnd: boolean }> {
    const { localizer, signal } = this.#context;
    const { environment } = this.#episode;
    const element = action['element'];
    let point = null;
    if (typeof element === 'string') {
      const found = await localizer.locate(element, await environment.observe(signal), signal);
      this.#usage.push(...(found.usage ?? []));
      if (!found.found) {
        return {
          entry: { action, thought, note, result: { ok: false, message: found.message } },
          isEnd: false,
        };
      }
      point = found.point;
    }
    const result = await environment.act(action, point, signal);
    const isEnd = (await environment.verdict()) !== null || action.type === 'answer';
    return { entry: { action, thought, note, result }, isEnd };
  }

  /** What the policy offers in this state; the same whenever it is asked. */
  async #propose({ path, history }: Node, observation: Observation): Promise<Candidate[]> {
    const { proposer, random, signal } = this.#context;
    const known = new Set<string>();
    const candidates: Candidate[] = [];
    const events = proposer.propose({
      instruction: this.#episode.instruction,
      ...{ history, observation },
      n: this.#settings.width,
      random: random(path.length, 'propose'),
      ...(signal ? { signal } : {}),
    });
    for await (const event of events) {
      if (event.type === 'usage') this.#usage.push(event.usage);
      if (event.type !== 'candidate') continue;
      const key = actionKey(event.candidate.action);
      if (!known.has(key)) candidates.push(event.candidate);
      known.add(key);
    }
    return candidates;
  }

  #score(history: readonly HistoryEntry[], { screenshot }: Observation, candidates: readonly Candidate[]) {
    const { signal } = this.#context;
    const scoring = this.#critic.begin({
      instruction: this.#episode.instruction,
      ...{ history, screenshot },
      ...(signal ? { signal } : {}),
    });
    for (const candidate of candidates) scoring.add(candidate);
    return scoring.scores();
  }
}

function keyOf(path: readonly ReplayStep[]): string {
  return JSON.stringify(path.map(({ candidates, index }) => actionKey(candidates[index]!.action)));
}
