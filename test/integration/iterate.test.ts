/** The loop through its command, in a real browser with real training, killed wherever it happens to be. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { readCurve } from '../../ts/evaluation/loop/curve.js';
import type { IterateResult } from '../../ts/evaluation/loop/iterate.js';
import { readJournal } from '../../ts/evaluation/loop/journal.js';
import { hashFile } from '../../ts/learning/profile.js';
import { openRun } from '../../ts/store/run.js';

const child = join(import.meta.dirname, '../support/command-child.ts');

const smallNets = ['steps=30', 'projection=8', 'hidden=8', 'validationFraction=0', 'allowSingleOutcome=true'];

/** Kills the process, hard, at the first line of stderr that matches. */
async function iterate(argv: readonly string[], killAt?: RegExp) {
  const running = spawn(process.execPath, ['--import', 'tsx', child, 'iterate', ...argv], { stdio: 'pipe' });
  const output = { stdout: '', stderr: '' };
  running.stdout.on('data', (data) => {
    output.stdout += data;
  });
  running.stderr.on('data', (data) => {
    output.stderr += data;
    if (killAt?.test(output.stderr)) running.kill('SIGKILL');
  });
  const [code] = await once(running, 'close');
  return { code: code as number | null, ...output };
}

describe('iterate', () => {
  let root: string;
  let out: string;
  const argv = (...more: string[]): string[] => [
    ...['--benchmark', 'miniwob', '--tasks', 'click-option,click-tab-2', '--seeds', '0-1', '--repeats', '2'],
    ...['--explore-runs', '1', '--cycles', '1', '--cycle-runs', '1', '--selector', 'best-of-q@margin=auto'],
    ...['--validation-seeds', '10000', '--workers', '2', '--out', out],
    ...['--cache', join(root, 'cache')],
    ...smallNets.flatMap((setting) => ['--train', setting]),
    ...more,
  ];

  before(async () => {
    root = await mkdtemp(join(tmpdir(), 'boq-iterate-'));
    out = join(root, 'loop');
  });
  after(() => rm(root, { recursive: true }));

  it('is killed while it validates, collects, embeds and trains, and goes on each time', async () => {
    for (const point of [
      /validate the policy/,
      /play g0-1/,
      /explore: train/,
      /explore: validate/,
      /play g1-1/,
    ]) {
      const { code, stderr } = await iterate(argv(), point);
      expect(code, stderr).to.equal(null);
    }
    const { code, stdout, stderr } = await iterate(argv('--json'));
    expect(code, stderr).to.equal(0);
    const result = JSON.parse(stdout) as IterateResult;
    expect(result.curve.map(({ trained }) => trained)).to.deep.equal([0, 8, 16]);
    expect(result.endedBy).to.equal(null);
    for (const run of ['g0-1', 'g1-1'])
      expect((await (await openRun(join(out, 'runs', run))).committed()).size).to.equal(8);
    const events = await readJournal(join(out, 'journal.jsonl'));
    expect(events.filter(({ event }) => event === 'sitting')).to.have.length(6);
    expect(events.filter(({ event }) => event === 'collected')).to.have.length(2);
    expect(events.filter(({ event }) => event === 'trained')).to.have.length(2);
    const [, embedded, cached] =
      [...stderr.matchAll(/g1-1, (\d+) rows embedded, (\d+) cached/g)].at(-1) ?? [];
    expect(Number(cached), 'what was embedded while choosing').to.be.above(5 * Number(embedded));
  });

  it('exploits with the model that it trained, at the margin that validation chose', async () => {
    const run = await openRun(join(out, 'runs', 'g1-1'));
    const [point] = (await readCurve(out)).filter(({ generation }) => generation === 0);
    const { selector, generation } = run.record.config;
    expect(selector).to.equal(point!.margin === 0 ? 'best-of-q' : `best-of-q@margin=${point!.margin}`);
    const weights = await hashFile(join(out, 'models', 'g0', 'model.safetensors'));
    expect(generation).to.equal(weights.slice(0, 12));
  });

  it('keeps the best model, and shows the curve in its report', async () => {
    const curve = await readCurve(out);
    const best = curve[2]!.successRate > curve[1]!.successRate ? 'g1' : 'g0';
    const weights = (model: string) => hashFile(join(out, 'models', model, 'model.safetensors'));
    expect(await weights('best')).to.equal(await weights(best));
    expect(await readFile(join(out, 'report.html'), 'utf8')).to.include('Learning curve');
  });

  it('ends in order when its budget is spent', async () => {
    out = join(root, 'budget');
    const first = await iterate(argv('--json', '--budget', '11episodes'));
    expect(first.code, first.stderr).to.equal(0);
    const { curve, endedBy } = JSON.parse(first.stdout) as IterateResult;
    expect(curve.map(({ trained }) => trained)).to.deep.equal([0, 8, 11]);
    expect(endedBy).to.include('11 of 11 episodes');
  });
});
