import { expect } from 'chai';
import { readStartValues, uncertainTasks } from '../../ts/evaluation/loop/curriculum.js';
import type { StoredEpisode } from '../../ts/store/run.js';

describe('the curriculum', () => {
  it('takes the tasks whose value is nearest to a half, in their order', () => {
    const values = { sure: 0.95, hopeless: 0.02, open: 0.6, close: 0.45 };
    const tasks = Object.keys(values);
    expect(uncertainTasks(tasks, values, 0.5)).to.deep.equal(['open', 'close']);
    expect(uncertainTasks(tasks, values, 1)).to.deep.equal(tasks);
    expect(uncertainTasks(tasks, values, 0.01)).to.deep.equal(['close']);
    expect(uncertainTasks(['new', ...tasks], values, 0.2)).to.deep.equal(['new']);
  });

  it('reads the value of each task from its first steps', async () => {
    async function* episodes() {
      for (const [task, v] of [
        ['a', 0.25],
        ['a', 0.75],
        ['b', 0.1],
        ['unscored', null],
      ] as const) {
        const scores = v === null ? null : { q: [v], spread: [0], v };
        yield {
          record: { key: { task } },
          steps: [{ scores }, { scores: { v: 9 } }],
        } as unknown as StoredEpisode;
      }
    }
    expect(await readStartValues(episodes())).to.deep.equal({ a: 0.5, b: 0.1 });
  });
});
