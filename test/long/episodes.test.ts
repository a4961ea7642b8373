/** Five hundred episodes in one process: what they use must not grow, and nothing may stay. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { expect } from 'chai';
import { type CollectOptions, collect } from '../../ts/evaluation/collect.js';
import { ModelSet } from '../../ts/evaluation/models.js';
import { embedRun } from '../../ts/learning/embed-run.js';
import { Embedder } from '../../ts/learning/embedder.js';
import { openRunSource } from '../../ts/learning/run-source.js';
import { train } from '../../ts/learning/train.js';
import { tinyCheckpoint } from '../support/checkpoint.js';
import { descendants, openHandles, slope } from '../support/processes.js';

const tasks = ['click-button', 'click-checkboxes', 'enter-text', 'login-user', 'click-tab-2'];
const warmUp = 50;

setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc') as () => void;

interface Course {
  memory: { x: number; y: number }[];
  handles: { x: number; y: number }[];
}

describe('five hundred episodes in one process', () => {
  let root: string;
  before(async () => {
    root = await mkdtemp(join(tmpdir(), 'boq-long-'));
  });
  after(() => rm(root, { recursive: true }));

  /** Plays them one after the other; memory in kB and open handles after every fifth. */
  async function play(out: string, choice: Pick<CollectOptions, 'selector' | 'critic'>): Promise<Course> {
    const course: Course = { memory: [], handles: [] };
    const summary = await collect({
      ...{ benchmark: 'miniwob', tasks, seeds: { from: 100, to: 199 }, workers: 1, out },
      ...choice,
      onProgress: ({ played }) => {
        if (played < warmUp || played % 5 !== 0 || course.memory.at(-1)?.x === played) return;
        collectGarbage();
        course.memory.push({ x: played, y: process.memoryUsage.rss() / 1000 });
        course.handles.push({ x: played, y: openHandles() });
      },
    });
    expect(summary).to.include({ episodes: 500, played: 500 });
    expect(summary.faults).to.deep.equal([]);
    const [first, last] = [course.memory[0]!, course.memory.at(-1)!];
    process.stdout.write(
      `      memory ${(first.y / 1000).toFixed(1)} MB after ${first.x} episodes, ${(last.y / 1000).toFixed(1)} MB after ` +
        `${last.x}: ${slope(course.memory).toFixed(1)} kB an episode; handles ${course.handles[0]!.y} and ` +
        `${course.handles.at(-1)!.y}\n`,
    );
    return course;
  }

  /** Little may be remembered for reuse: that memory fills over thousands of episodes, and would be taken for a leak. */
  async function scored(checkpoint: string, model: string): Promise<Course> {
    await using models = new ModelSet({ embedder: checkpoint, reuse: { megabytes: 16 } });
    const { critic, id } = await models.open(model);
    return await play(join(root, 'scored'), { selector: 'best-of-q', critic: { critic, generation: id } });
  }

  function expectNothingLeft(
    handles: Course['handles'],
    before: { handles: number; processes: number },
  ): void {
    expect(Math.abs(slope(handles)) * 450).to.be.lessThan(3);
    expect(descendants().filter(({ state }) => state === 'Z')).to.deep.equal([]);
    expect(descendants()).to.have.length(before.processes);
    expect(openHandles()).to.be.at.most(before.handles + 2);
  }

  it('use as much memory and as many handles at the end as after the first fifty, and leave no browser', async () => {
    const before = { handles: openHandles(), processes: descendants().length };
    const { memory, handles } = await play(join(root, 'plain'), { selector: 'first' });
    expect(slope(memory)).to.be.lessThan(50);
    expectNothingLeft(handles, before);
  }).timeout(0);

  it('do so where a model scores them, too', async () => {
    const checkpoint = await tinyCheckpoint();
    const data = join(root, 'data');
    await collect({ benchmark: 'miniwob', tasks, seeds: { from: 0, to: 2 }, out: data });
    {
      await using embedder = await Embedder.load({ path: checkpoint });
      await embedRun(await openRunSource(data), embedder);
    }
    const path = join(root, 'model');
    await train({ data: [data], out: path, config: { steps: 20, projection: 8, hidden: [8] } });
    const before = { handles: openHandles(), processes: descendants().length };
    const { memory, handles } = await scored(checkpoint, path);
    expect(slope(memory)).to.be.lessThan(50);
    expectNothingLeft(handles, before);
  }).timeout(0);
});
