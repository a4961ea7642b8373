/** Questions of the agent, answered at a real terminal. */
import { spawn } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { openRun } from '../../ts/store/run.js';
import { fixtureUrl } from '../support/browser.js';

const child = join(import.meta.dirname, '../support/command-child.ts');

/** Plays agent.js on the checkout page at a pseudo-terminal (of util-linux's script), answering as it asks. */
async function atTerminal(question: RegExp, reply: string, out: string) {
  const task = ['--url', fixtureUrl('pages/checkout.html'), '--task', 'Click "Pay 20 €"', '--steps', '1'];
  const argv = ['agent', ...task, '--selector', 'first', '--confirm', 'ask', '--out', out];
  const command = [process.execPath, '--import', 'tsx', child, ...argv].map((word) => `'${word}'`).join(' ');
  const terminal = spawn('script', ['--quiet', '--return', '--flush', '--command', command, '/dev/null'], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  let shown = '';
  let asked = 0;
  terminal.stdout.on('data', (chunk: Buffer) => {
    shown += chunk.toString();
    const questions = shown.match(new RegExp(question, 'g'))?.length ?? 0;
    for (; asked < questions; asked++) terminal.stdin.write(`${reply}\n`);
  });
  await new Promise((resolve) => terminal.once('close', resolve));
  for await (const { steps } of (await openRun(out)).episodes())
    return { shown, asked, result: steps[0]!.result };
  throw new Error(`no episode:\n${shown}`);
}

describe('questions at the terminal', () => {
  let root: string;

  before(async () => {
    root = await mkdtemp(join(tmpdir(), 'boq-terminal-'));
  });
  after(() => rm(root, { recursive: true }));

  it('presses what pays only where that is confirmed', async () => {
    const question = /press it\? \[y\/N\]/;
    const confirmed = await atTerminal(question, 'y', join(root, 'yes'));
    expect(confirmed.asked).to.equal(1);
    expect(confirmed.result.ok).to.equal(true);
    const refused = await atTerminal(question, '', join(root, 'no'));
    expect(refused.asked).to.equal(1);
    expect(refused.result).to.deep.include({ ok: false });
    expect(refused.result.message).to.include('was not confirmed');
    expect(refused.shown).to.include('button "Pay 20 €"');
  });
});
