/** A world whose state is what was clicked so far: it can be begun again, replayed and searched. */
import { Meter } from '../../../ts/agent/methods/meter.js';
import { createMethod } from '../../../ts/agent/methods/registry.js';
import type {
  Critic,
  Environment,
  Episode,
  Observation,
  Proposer,
  Verdict,
} from '../../../ts/agent/types.js';
import { randomSource } from '../../../ts/core/random.js';
import type { Action, ActionResult, Candidate } from '../../../ts/store/types.js';
import { anyPlace, candidate, MemoryRecorder, observation, scriptedProposer } from './fake-agent.js';

export class Maze implements Environment {
  readonly path: string[] = [];
  /** Paths that end the task, and whether well. */
  readonly #ends: Readonly<Record<string, boolean>>;
  /** Something in the address that differs from visit to visit. */
  readonly #mark: string;

  constructor(ends: Readonly<Record<string, boolean>>, mark = '') {
    this.#ends = ends;
    this.#mark = mark;
  }

  async observe(): Promise<Observation> {
    return { ...observation(this.path.length), url: `http://maze.test/${this.path.join('/')}${this.#mark}` };
  }

  async act({ type, element }: Action): Promise<ActionResult> {
    if (type === 'restart') this.path.length = 0;
    else this.path.push(String(element));
    return { ok: true, message: `went ${element}` };
  }

  async verdict(): Promise<Verdict | null> {
    const end = this.#ends[this.path.join('/')];
    if (end === undefined) return null;
    return end ? { outcome: 'success', rawReward: 1 } : { outcome: 'failure', rawReward: 0 };
  }
}

/** V by the path that led to a state, Q by the path that an action would lead to; 0.5 where nothing is said. */
export class PathCritic implements Critic {
  readonly #values: Readonly<Record<string, number>>;
  readonly #spreads: Readonly<Record<string, number>>;

  constructor(values: Readonly<Record<string, number>>, spreads: Readonly<Record<string, number>> = {}) {
    this.#values = values;
    this.#spreads = spreads;
  }

  begin({ history }: Parameters<Critic['begin']>[0]) {
    const here = history
      .filter(({ action }) => action.type === 'click')
      .map(({ action }) => action['element']);
    const paths: string[] = [];
    return {
      add: ({ action }: Candidate) => {
        paths.push([...here, action['element'] ?? action.type].join('/'));
      },
      scores: async () => ({
        q: paths.map((path) => this.#values[path] ?? 0.5),
        spread: paths.map((path) => this.#spreads[path] ?? 0),
        v: this.#values[here.join('/')] ?? 0.5,
      }),
    };
  }
}

export interface PlayOptions {
  ends?: Readonly<Record<string, boolean>>;
  critic?: Critic;
  proposer?: Proposer;
  n?: number;
  maxSteps?: number;
  /** What differs in the address of the k-th start. */
  mark?: (start: number) => string;
}

/** Plays one episode by a method; `taken` are the elements of the episode that counts. */
export async function playMethod(spec: string, options: PlayOptions = {}) {
  const { ends = {}, critic = new PathCritic({}), n = 2, maxSteps = 2, mark = () => '' } = options;
  const proposer = options.proposer ?? scriptedProposer(() => ['a', 'b', 'c'].map((name) => candidate(name)));
  const meter = new Meter();
  const recorder = new MemoryRecorder();
  let starts = 0;
  const open = (): Episode =>
    meter.episode({
      instruction: 'find the way',
      startUrl: 'http://maze.test/',
      environment: new Maze(ends, mark(starts++)),
    });
  const result = await createMethod(spec).play({
    episode: open(),
    reset: async () => open(),
    proposer: meter.proposer(proposer),
    localizer: anyPlace,
    critic: meter.critic(critic),
    n,
    limits: { maxSteps, maxMs: Number.POSITIVE_INFINITY },
    random: (step, purpose) => randomSource(['maze', step, purpose]),
    recorder,
  });
  const taken = recorder.records.map(({ candidates, selection }) => {
    const { action } = candidates[selection.index]!;
    return String(action['element'] ?? action.type);
  });
  const offered = recorder.records.map(({ candidates }) =>
    candidates.map(({ action }) => String(action['element'] ?? action.type)),
  );
  return { result, taken, offered, records: recorder.records, shots: recorder.shots, costs: meter.costs };
}
