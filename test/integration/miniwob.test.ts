import { expect } from 'chai';
import { ActionRegistry } from '../../ts/agent/actions/registry.js';
import { BrowserPool } from '../../ts/agent/browser/pool.js';
import { PageLocalizer } from '../../ts/agent/localizer/page.js';
import { PagePolicy } from '../../ts/agent/policy/page.js';
import type { HistoryEntry } from '../../ts/agent/types.js';
import { isBoqError } from '../../ts/core/errors.js';
import { randomSource } from '../../ts/core/random.js';
import { Miniwob } from '../../ts/evaluation/benchmarks/miniwob.js';
import type { Candidate } from '../../ts/store/types.js';

interface Trajectory {
  instruction: string;
  steps: string[];
  shots: string[];
  outcome: string;
  rawReward: number | null;
}

describe('MiniWoB++', () => {
  const benchmark = new Miniwob();
  const registry = new ActionRegistry();
  const localizer = new PageLocalizer();
  const policy = new PagePolicy();
  const pool = new BrowserPool({ size: 3 });
  after(() => pool.close());

  const play = (task: string, seed: number): Promise<Trajectory> =>
    pool.use(async (session) => {
      const { instruction, environment } = await benchmark.openEpisode(session, task, seed);
      const trajectory: Trajectory = { instruction, steps: [], shots: [], outcome: 'open', rawReward: null };
      const history: HistoryEntry[] = [];
      for (let step = 0; step < benchmark.defaults.maxSteps; step++) {
        const observation = await environment.observe();
        trajectory.shots.push(Buffer.from(observation.screenshot.bytes).toString('base64'));
        const candidates: Candidate[] = [];
        const random = randomSource([task, seed, step]);
        for await (const event of policy.propose({ instruction, history, observation, n: 3, random })) {
          if (event.type === 'candidate') candidates.push(event.candidate);
        }
        const [candidate] = candidates;
        if (!candidate) break;
        const { action, thought, note } = candidate;
        const needsPoint = registry.get(action.type)?.needsPoint;
        const found = needsPoint ? await localizer.locate(String(action.element), observation) : null;
        const result = await environment.act(action, found?.found ? found.point : null);
        history.push({ action, thought, note, result });
        trajectory.steps.push(JSON.stringify({ candidates, result }));
        const verdict = await environment.verdict();
        if (verdict) {
          trajectory.outcome = verdict.outcome;
          trajectory.rawReward = verdict.rawReward;
          break;
        }
      }
      return trajectory;
    });

  it('knows tasks and sets', () => {
    expect(benchmark.resolveTasks(['@demo-train'])).to.have.length(30);
    expect(benchmark.resolveTasks(['@demo-unseen'])).to.have.length(22);
    expect(benchmark.resolveTasks(['@all'])).to.have.length(125);
    const split = [...benchmark.resolveTasks(['@train']), ...benchmark.resolveTasks(['@test'])];
    expect(split.sort()).to.deep.equal(benchmark.resolveTasks(['@all']));
    for (const task of split) expect(benchmark.tasks).to.include(task);
    expect(benchmark.tasks).to.have.length(130);
    expect(benchmark.resolveTasks(['click-test,click-link', 'click-test'])).to.deep.equal([
      'click-test',
      'click-link',
    ]);
  });

  it('names the nearest task for an unknown one', () => {
    expect(() => benchmark.resolveTasks(['click-buton']))
      .to.throw(/got "click-buton"; nearest: click-button/)
      .that.satisfies((error: unknown) => isBoqError(error, 'BOQ_TASK_UNKNOWN'));
  });

  for (const task of [
    'click-test-2',
    'enter-text',
    'login-user',
    'click-checkboxes',
    'email-inbox-delete',
    'choose-list',
  ]) {
    it(`solves ${task} with the page policy`, async () => {
      expect(await play(task, 3)).to.include({ outcome: 'success', rawReward: 1 });
    });
  }

  it('counts a wrong click as a failure with its raw reward', () =>
    pool.use(async (session) => {
      const { environment } = await benchmark.openEpisode(session, 'click-test-2', 0);
      const { elements } = await environment.observe();
      const wrong = elements.find(({ name }) => name === 'TWO');
      const point = wrong ? { x: wrong.box.x + 5, y: wrong.box.y + 5 } : null;
      expect(await environment.verdict()).to.equal(null);
      await environment.act({ type: 'click', element: 'button "TWO"' }, point);
      expect(await environment.verdict()).to.deep.equal({ outcome: 'failure', rawReward: -1 });
    }));

  it('hides goal, reward and clock from the page', () =>
    pool.use(async (session) => {
      const { environment, instruction } = await benchmark.openEpisode(session, 'click-test', 0);
      const observation = await environment.observe();
      expect(observation.viewport).to.include({ width: 332, height: 214 });
      const text = observation.elements.map(({ name }) => name).join(' ');
      expect(text).not.to.contain(instruction);
      expect(text).not.to.match(/reward|START|sec/i);
    }));

  it('brings the same problem back on refresh and on restart', () =>
    pool.use(async (session) => {
      const { environment } = await benchmark.openEpisode(session, 'click-checkboxes', 5);
      const names = async () => (await environment.observe()).elements.map(({ name }) => name);
      const first = await names();
      for (const type of ['refresh', 'restart', 'go_back']) {
        await environment.act({ type }, null);
        expect(await names()).to.deep.equal(first);
        expect(await environment.verdict()).to.equal(null);
      }
    }));

  it('gives identical trajectories and pictures for the same seed, side by side with others', async () => {
    const tasks = [
      'email-inbox-reply',
      'use-autocomplete-nodelay',
      'click-tab-2',
      'navigate-tree',
      'search-engine',
      'click-collapsible-2',
    ];
    const round = () => Promise.all(tasks.map((task) => play(task, 11)));
    const [first, second] = [await round(), await round()];
    first.forEach((trajectory, index) => {
      const again = second[index];
      expect(again?.steps, tasks[index]).to.deep.equal(trajectory.steps);
      const changed = trajectory.shots.flatMap((shot, step) => (shot === again?.shots[step] ? [] : [step]));
      expect(changed, `changed pictures of ${tasks[index]}`).to.deep.equal([]);
      expect(again).to.deep.equal(trajectory);
    });
    expect(await play('email-inbox-reply', 12)).not.to.deep.equal(first[0]);
  });

  it('refuses a seed that is no integer', async () => {
    let fault: unknown;
    await pool
      .use((session) => benchmark.openEpisode(session, 'click-test', 0.5))
      .catch((error: unknown) => {
        fault = error;
      });
    expect(isBoqError(fault, 'BOQ_INVALID_ARGUMENT')).to.equal(true);
  });
});
