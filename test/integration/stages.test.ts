/** Collecting, evaluating and the agent through their commands, in a real browser. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import sharp from 'sharp';
import { agentEvents } from '../../ts/agent/agent-events.js';
import { previewAgent } from '../../ts/agent/run-agent.js';
import type { Results } from '../../ts/evaluation/results.js';
import { openRun } from '../../ts/store/run.js';
import type { StepRecord } from '../../ts/store/types.js';

const child = join(import.meta.dirname, '../support/command-child.ts');

interface Ended {
  code: number | null;
  stdout: string;
  stderr: string;
}

/** Starts a command; `onLine` sees each line of stderr as it comes. */
function start(
  name: string,
  argv: string[],
  onLine: (line: string, process: ChildProcess) => void = () => {},
) {
  const running = spawn(process.execPath, ['--import', 'tsx', child, name, ...argv], { stdio: 'pipe' });
  const output = { stdout: '', stderr: '' };
  running.stdout.on('data', (data) => {
    output.stdout += data;
  });
  running.stderr.on('data', (data) => {
    output.stderr += data;
    for (const line of String(data).split('\n')) if (line) onLine(line, running);
  });
  const ended = once(running, 'close').then(([code]): Ended => ({ code, ...output }));
  return { running, ended };
}

const command = (name: string, ...argv: string[]): Promise<Ended> => start(name, argv).ended;

describe('stages', () => {
  let root: string;
  const at = (name: string): string => join(root, name);
  const tasks = ['--benchmark', 'miniwob', '--tasks', 'click-option,enter-text,click-tab-2,login-user'];

  before(async () => {
    root = await mkdtemp(join(tmpdir(), 'boq-stages-'));
  });
  after(() => rm(root, { recursive: true }));

  async function content(folder: string): Promise<string[]> {
    const episodes: string[] = [];
    for await (const { record, steps } of (await openRun(folder)).episodes()) {
      const { attempt, startedAt, durationMs, stepsSha256, ...lasting } = record;
      const timeless = steps.map(({ timings, ...step }: StepRecord) => step);
      episodes.push(JSON.stringify({ lasting, timeless }));
    }
    return episodes;
  }

  it('collect goes on after kill -9 and after Ctrl-C, and records what one unbroken worker records', async () => {
    const options = [...tasks, '--seeds', '0-1', '--repeats', '2', '--seed', '3'];
    const unbroken = await command(
      'collect',
      ...options,
      '--workers',
      '1',
      '--json',
      '--out',
      at('unbroken'),
    );
    expect(unbroken.code, unbroken.stderr).to.equal(0);
    expect(JSON.parse(unbroken.stdout)).to.include({ episodes: 16, played: 16, faults: 0 });

    const broken = [...options, '--workers', '4', '--out', at('broken')];
    const atShare = (share: number, signal: NodeJS.Signals) => {
      let isSent = false;
      return (line: string, process: ChildProcess): void => {
        const found = /\((\d+) %\)/.exec(line);
        if (isSent || !found || Number(found[1]) < share) return;
        isSent = true;
        process.kill(signal);
      };
    };
    const killed = await start('collect', broken, atShare(20, 'SIGKILL')).ended;
    expect(killed.code).to.equal(null);
    const stopped = await start('collect', broken, atShare(50, 'SIGINT')).ended;
    expect(stopped.code, stopped.stderr).to.equal(130);
    expect(stopped.stderr).to.include('same command again');
    const committed = (await content(at('broken'))).length;
    expect(committed).to.be.greaterThan(0).and.lessThan(16);
    const ended = await command('collect', ...broken, '--json');
    expect(ended.code, ended.stderr).to.equal(0);
    expect(JSON.parse(ended.stdout)).to.include({ episodes: 16, played: 16 - committed });
    expect(await content(at('broken'))).to.deep.equal(await content(at('unbroken')));
  });

  it('collect stores every screenshot at the size of the page', async () => {
    const run = await openRun(at('broken'));
    for await (const { record, steps } of run.episodes()) {
      for (const { observation } of [
        ...steps,
        ...(record.finalObservation ? [{ observation: record.finalObservation }] : []),
      ]) {
        const { width, height } = await sharp(
          run.shotPath(record.attempt, observation.screenshot),
        ).metadata();
        expect([width, height]).to.deep.equal([332, 214]);
      }
    }
  });

  it('evaluate compares selectors; equal values for all change nothing', async () => {
    const options = [...tasks, '--seeds', '20000-20001', '--out', at('evaluated'), '--quiet'];
    // Two methods with a margin of their own to be found.
    const open = ['best-of-q@margin=auto', 'best-of-q@margin=auto&rescue=0.1'];
    const selectors = ['--selectors', ['prompting', 'first', 'random', 'best-of-q', ...open].join()];
    const control = ['--control', 'constant', '--validation-seeds', '10000'];
    const { code, stdout, stderr } = await command('evaluate', ...options, ...selectors, ...control);
    expect(code, stderr).to.equal(0);
    expect(stdout).to.include('best-of-q (constant)');
    const results = JSON.parse(await readFile(join(at('evaluated'), 'results.json'), 'utf8')) as Results;
    const { first, random } = results.selectors;
    const constant = results.selectors['best-of-q (constant)'];
    expect(constant).to.deep.equal(first);
    for (const method of open) expect(results.selectors[`${method} (constant)`]).to.deep.equal(first);
    expect(random).to.include({ episodes: 8, pairs: 8 });
    expect(results.selectors.prompting).to.include({ episodes: 8, difference: null });
    const rows = (await readFile(join(at('evaluated'), 'results.csv'), 'utf8')).trim().split('\n');
    expect(rows).to.have.length(1 + 6 * 8);
    const attempt = rows[0]!.split(',').indexOf('attempt');
    for (const row of rows.slice(1)) await readdir(join(at('evaluated'), row.split(',')[attempt]!));
  });

  it('refuses to choose a margin on the seeds that measure it', async () => {
    const options = [...tasks, '--seeds', '5-9', '--out', at('overlap'), '--control', 'constant'];
    const selectors = ['--selectors', 'prompting,best-of-q@margin=auto', '--validation-seeds', '9-12'];
    const { code, stderr } = await command('evaluate', ...options, ...selectors);
    expect(code).to.equal(2);
    expect(stderr).to.include('BOQ_USAGE').and.include('apart');
  });

  it('the agent does its order on the page of the package, and shows what it considered', async () => {
    const { code, stdout, stderr } = await command('agent', '--selector', 'first', '--out', at('agent'));
    expect(code, stderr).to.equal(0);
    expect(stdout)
      .to.match(/Step 1\n > .*\n {3}\S/)
      .and.include('success after');
    const run = await openRun(at('agent'));
    const [episode] = await content(run.folder);
    expect(episode).to.include('"outcome":"success"');
  });

  it('the agent tells of an address that does not answer', async () => {
    const address = ['--url', 'http://127.0.0.1:9/', '--task', 'look', '--selector', 'first'];
    const { code, stderr } = await command('agent', ...address, '--out', at('nowhere'));
    expect(code).to.equal(1);
    expect(stderr).to.include('BOQ_BROWSER').and.include('127.0.0.1:9');
  });
});

describe('agentEvents', () => {
  let root: string;
  const url = new URL('../../examples/pages/tea-shop.html', import.meta.url).href;
  const order = {
    url,
    task: 'Select Green tea and Lemon, enter "Ada" into the field Name, and click Order.',
    successText: 'Thank you, Ada: Green tea, Lemon.',
    selector: 'first',
  };

  before(async () => {
    root = await mkdtemp(join(tmpdir(), 'boq-events-'));
  });
  after(() => rm(root, { recursive: true }));

  it('streams what happens and returns the summary', async () => {
    const events = agentEvents({ ...order, out: join(root, 'all') });
    const types: string[] = [];
    let next = await events.next();
    for (; !next.done; next = await events.next()) types.push(next.value.type);
    expect(next.value.record).to.include({ outcome: 'success' });
    expect(types.slice(0, 2)).to.deep.equal(['observed', 'candidate']);
    expect(types.at(-1)).to.equal('end');
    expect(types.filter((type) => type === 'step')).to.have.length(next.value.record.steps);
  });

  it('stops the agent and its browser when the reader leaves', async () => {
    for await (const event of agentEvents({ ...order, out: join(root, 'left') })) {
      if (event.type === 'step') break;
    }
    const run = await openRun(join(root, 'left'));
    expect((await run.committed()).size).to.equal(0);
    const [attempt] = await run.attempts();
    expect((await run.attempt(attempt!)).steps.length).to.be.greaterThan(0);
  });

  it('throws what the agent throws', async () => {
    const events = agentEvents({ ...order, selector: 'best-of-q', out: join(root, 'none') });
    const error = await events.next().catch((reason: unknown) => reason);
    expect(error).to.have.property('code', 'BOQ_USAGE');
  });

  it('shows what would be asked, and touches nothing', async () => {
    const { observation, prompt, candidates } = await previewAgent({ ...order, n: 3 });
    expect(observation.title).to.equal('Tea shop');
    expect(prompt).to.equal(null);
    expect(candidates).to.have.length(3);
  });
});
