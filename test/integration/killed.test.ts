/** The agent and its browser, killed at some moment: what stays on disk, what counts, and what is run again. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import sharp from 'sharp';
import { createPolicy } from '../../ts/agent/policy/registry.js';
import type { Proposer } from '../../ts/agent/types.js';
import { collect } from '../../ts/evaluation/collect.js';
import { openRunSource } from '../../ts/learning/run-source.js';
import { openRun } from '../../ts/store/run.js';
import { descendants } from '../support/processes.js';

const command = join(import.meta.dirname, '../support/command-child.ts');

/** Lines of a process's output, one at a time. */
async function* linesOf(child: ChildProcess): AsyncGenerator<string> {
  let rest = '';
  for await (const chunk of child.stdout!) {
    const lines = (rest + chunk).split('\n');
    rest = lines.pop() ?? '';
    yield* lines;
  }
}

describe('killed', () => {
  let root: string;
  before(async () => {
    root = await mkdtemp(join(tmpdir(), 'boq-killed-'));
  });
  after(() => rm(root, { recursive: true }));

  /** The agent's small order on the page of this package, in a process of its own. */
  function startAgent(out: string): ChildProcess {
    const options = ['agent', '--selector', 'first', '--json', '--out', out];
    return spawn(process.execPath, ['--import', 'tsx', command, ...options], {
      stdio: ['ignore', 'pipe', 'ignore'],
    });
  }

  for (const steps of [0, 1, 2]) {
    it(`the agent, after ${steps} of its steps: they can be looked at, train nothing, and are done again`, async () => {
      const out = join(root, `after-${steps}`);
      const child = startAgent(out);
      const gone = once(child, 'exit');
      if (steps === 0) {
        // As soon as the attempt has begun.
        const begun = async () =>
          openRun(out).then(
            (run) => run.attempts(),
            () => [],
          );
        while ((await begun()).length === 0 && child.exitCode === null) await new Promise(setImmediate);
      } else {
        let seen = 0;
        for await (const line of linesOf(child)) if (line.startsWith('{') && ++seen === steps) break;
      }
      child.kill('SIGKILL');
      await gone;
      expect(child.signalCode).to.equal('SIGKILL');

      const torn = await openRun(out);
      const [attempt] = await torn.attempts();
      const stored = await torn.attempt(attempt!);
      expect(stored.steps.length).to.be.at.least(steps);
      expect(stored.steps.map(({ index }) => index)).to.deep.equal([...stored.steps.keys()]);
      for (const { observation } of stored.steps) {
        const picture = await sharp(torn.shotPath(attempt!, observation.screenshot)).metadata();
        expect(picture).to.include({ width: 1280, height: 720 });
      }
      expect((await torn.committed()).size).to.equal(0);
      expect(await (await openRunSource(out)).episodes()).to.deep.equal([]);

      const [code] = await once(startAgent(out), 'exit');
      expect(code).to.equal(0);
      const whole = await openRun(out);
      expect(await whole.attempts()).to.have.length(2);
      const [record, ...others] = await (await openRunSource(out)).episodes();
      expect(others).to.deep.equal([]);
      const played = await whole.steps(record!);
      expect(record).to.include({ outcome: 'success', steps: played.length });
      expect(record!.attempt).not.to.equal(attempt);
      expect(played[0]!.index).to.equal(0);
    });
  }

  it('the browser, between the steps of episodes: they are played again, and nothing of it stays', async () => {
    const page = createPolicy('page');
    let asked = 0;
    const killer: Proposer = {
      name: 'killer',
      async *propose(request) {
        if (++asked === 3) {
          for (const { pid, name } of descendants()) if (/chrom/.test(name)) process.kill(pid, 'SIGKILL');
        }
        yield* page.propose(request);
      },
    };
    const before = descendants().length;
    const out = join(root, 'browser');
    const summary = await collect({
      benchmark: 'miniwob',
      tasks: ['click-checkboxes', 'login-user'],
      seeds: { from: 0, to: 2 },
      policy: killer,
      selector: 'first',
      workers: 2,
      out,
    });
    expect(summary).to.include({ episodes: 6, played: 6 });
    expect(summary.faults).to.deep.equal([]);
    expect((await (await openRun(out)).attempts()).length).to.be.greaterThan(6);
    expect(descendants().filter(({ name }) => /chrom/.test(name))).to.deep.equal([]);
    expect(descendants().length).to.be.at.most(before);
  });
});
