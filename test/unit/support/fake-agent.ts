/** A small world without a browser: a page that counts clicks, a policy that reads a script, a critic that knows. */

import type { EpisodeRecorder } from '../../../ts/agent/episode.js';
import type {
  Critic,
  Environment,
  Episode,
  Localizer,
  Observation,
  ProposalEvent,
  ProposeRequest,
  Proposer,
  Verdict,
} from '../../../ts/agent/types.js';
import type { Action, ActionResult, Candidate, StepRecord } from '../../../ts/store/types.js';

export function candidate(element: string, thought = ''): Candidate {
  return { action: { type: 'click', element }, thought, note: '' };
}

export function observation(step: number): Observation {
  return {
    url: `http://page.test/${step}`,
    title: 'page',
    viewport: { width: 4, height: 4, deviceScaleFactor: 1 },
    scroll: { x: 0, y: 0, maxX: 0, maxY: 0 },
    screenshot: { bytes: new Uint8Array([step, 1, 2]), format: 'webp', width: 4, height: 4 },
    elements: [],
    tabs: [],
    events: [],
  };
}

/** Succeeds when "goal" is clicked, fails when "trap" is. */
export class ClickWorld implements Environment {
  readonly acts: Action[] = [];
  observed = 0;
  beforeAct: (signal?: AbortSignal) => Promise<void> = async () => {};

  async observe(): Promise<Observation> {
    return observation(this.observed++);
  }

  async act(action: Action, _point: unknown, signal?: AbortSignal): Promise<ActionResult> {
    await this.beforeAct(signal);
    this.acts.push(action);
    return { ok: true, message: `did ${action.type}` };
  }

  async verdict(): Promise<Verdict | null> {
    const element = this.acts.at(-1)?.['element'];
    if (element === 'goal') return { outcome: 'success', rawReward: 0.7 };
    if (element === 'trap') return { outcome: 'failure', rawReward: -1 };
    return null;
  }
}

export function clickEpisode(world: Environment = new ClickWorld()): Episode {
  return { instruction: 'click the goal', startUrl: 'http://page.test/', environment: world };
}

/** Offers what `script` says for the step, at most as many as were asked for. */
export function scriptedProposer(
  script: (step: number, request: ProposeRequest) => readonly (Candidate | ProposalEvent)[],
): Proposer {
  return {
    name: 'scripted',
    async *propose(request) {
      let offered = 0;
      for (const item of script(request.history.length, request)) {
        const event: ProposalEvent = 'action' in item ? { type: 'candidate', candidate: item } : item;
        if (event.type === 'candidate' && offered++ >= request.n) return;
        yield event;
      }
    },
  };
}

/** Values by element name; counts what it was asked. */
export class TableCritic implements Critic {
  readonly added: string[] = [];
  begun = 0;
  readonly #values: Readonly<Record<string, number>>;

  constructor(values: Readonly<Record<string, number>>) {
    this.#values = values;
  }

  begin() {
    this.begun++;
    const q: number[] = [];
    return {
      add: (offered: Candidate) => {
        const element = String(offered.action['element']);
        this.added.push(element);
        q.push(this.#values[element] ?? 0);
      },
      scores: async () => ({ q, spread: q.map(() => 0), v: 0.5 }),
    };
  }
}

export const anyPlace: Localizer = {
  name: 'any',
  locate: async (description) =>
    description === 'missing'
      ? { found: false, message: 'no element matches missing' }
      : { found: true, point: { x: 1, y: 2 }, element: description },
};

export class MemoryRecorder implements EpisodeRecorder {
  readonly records: StepRecord[] = [];
  readonly shots: string[] = [];

  shot(name: string): string {
    this.shots.push(name);
    return `shots/${name}.webp`;
  }

  async step(record: StepRecord): Promise<void> {
    this.records.push(record);
  }
}
