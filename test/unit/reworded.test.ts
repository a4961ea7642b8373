import { expect } from 'chai';
import type { Episode } from '../../ts/agent/types.js';
import { randomSource } from '../../ts/core/random.js';
import { openBenchmark } from '../../ts/evaluation/benchmarks/registry.js';
import { Reworded, reword } from '../../ts/evaluation/benchmarks/reworded.js';
import type { Benchmark } from '../../ts/evaluation/benchmarks/types.js';

const wordings = (instruction: string): Set<string> =>
  new Set(Array.from({ length: 40 }, (_, seed) => reword(instruction, randomSource([seed]))));

describe('instructions in other words', () => {
  it('keep what is quoted, and whatever has no other words', () => {
    const instruction = 'Click on the "click select enter" button, then Ada.';
    for (const said of wordings(instruction))
      expect(said).to.match(/^(Click on|Press|Choose|Hit) the "click select enter" button, then Ada\.$/);
    expect(wordings('What is 3 + 4?')).to.deep.equal(new Set(['What is 3 + 4?']));
    expect(wordings('clicking, reselected, "unclosed click').size).to.be.greaterThan(1);
    for (const said of wordings('clicking and reselected')) expect(said).to.equal('clicking and reselected');
  });

  it('differ, each phrase by itself', () => {
    const said = [...wordings('Select Anna and click Submit.')];
    expect(said.length).to.be.greaterThan(6);
    expect(said).to.include('Select Anna and click Submit.');
    for (const text of said) expect(text).to.match(/^[A-Z]\w+ Anna and .*Submit\.$/);
  });

  it('are one for each task instance, under a name of their own', async () => {
    const inner: Benchmark = {
      name: 'shop',
      defaults: { viewport: { width: 10, height: 10, deviceScaleFactor: 1 }, maxSteps: 3 },
      resolveTasks: (spec) => [...spec],
      openEpisode: async (_session, task) => ({ instruction: `Click ${task} and select two` }) as Episode,
    };
    const reworded = new Reworded(inner);
    expect(reworded.name).to.equal('shop+reworded');
    expect(reworded.defaults).to.equal(inner.defaults);
    const open = async (task: string, seed: number) =>
      (await reworded.openEpisode({} as never, task, seed)).instruction;
    expect(await open('tea', 1)).to.equal(await open('tea', 1));
    const seen = await Promise.all(Array.from({ length: 20 }, (_, seed) => open('tea', seed)));
    expect(new Set(seen).size).to.be.greaterThan(3);
    expect(openBenchmark('miniwob+reworded').name).to.equal('miniwob+reworded');
    expect(() => openBenchmark('miniwab+reworded')).to.throw('did you mean miniwob?');
  });
});
