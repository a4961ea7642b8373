/** The options of the agent that concern its window, each in a real browser. */
import { mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect } from 'chai';
import { actionsWith } from '../../ts/agent/actions/registry.js';
import type { IrreversibleAction } from '../../ts/agent/irreversible.js';
import { type AgentOptions, previewAgent, runAgent } from '../../ts/agent/run-agent.js';
import type { Observation, Proposer } from '../../ts/agent/types.js';
import { openRun } from '../../ts/store/run.js';
import type { Action } from '../../ts/store/types.js';
import { fixtureUrl } from '../support/browser.js';
import { rejection } from '../support/rejection.js';
import { startTrapServer, type TrapServer } from '../support/trap-server.js';

describe('the agent with its options', () => {
  let server: TrapServer;
  let root: string;
  let runs = 0;

  before(async () => {
    server = await startTrapServer();
    root = await mkdtemp(join(tmpdir(), 'boq-agent-'));
  });
  after(async () => {
    await server.close();
    await rm(root, { recursive: true });
  });

  /** Does these actions, one a step, and keeps what was seen. */
  async function does(actions: readonly Action[], options: Partial<AgentOptions> & { url: string }) {
    const seen: Observation[] = [];
    const script: Proposer = {
      name: 'script',
      async *propose({ history, observation }) {
        seen.push(observation);
        const action = actions[history.length] ?? { type: 'answer', text: observation.title };
        yield { type: 'candidate', candidate: { action, thought: '', note: '' } };
      },
    };
    const summary = await runAgent({
      task: 'as written',
      policy: script,
      selector: 'first',
      out: join(root, `run-${runs++}`),
      ...options,
    });
    const run = await openRun(summary.run);
    const steps = await run.steps(summary.record);
    const text = await readFile(join(summary.run, 'attempts', summary.record.attempt, 'steps.jsonl'), 'utf8');
    return { ...summary, run, steps, seen, text, results: steps.map(({ result }) => result) };
  }
  const click = (element: string): Action => ({ type: 'click', element });

  it('types secrets by name, and writes them nowhere', async () => {
    const written = { type: 'write', element: 'textbox "Name"', text: '{{login}}', submit: true };
    const { results, seen, text, record } = await does([written], {
      url: fixtureUrl('pages/controls.html'),
      secrets: { login: 'Rumpel & Stilz' },
    });
    expect(results[0]).to.deep.equal({
      ok: true,
      message: 'wrote "{{login}}" into textbox "Name" and pressed Enter',
    });
    expect(seen[1]!.title).to.include('name={{login}}');
    expect(record.answer).to.include('{{login}}');
    for (const shown of [text, JSON.stringify(record)]) expect(shown).not.to.match(/Rumpel/);
  });

  it('brings cookies along and leaves them in a file that only its owner reads', async () => {
    const brought = join(root, 'brought.json');
    const cookie = { name: 'kim', value: 'was-here', domain: '127.0.0.1', path: '/', sameSite: 'lax' };
    await writeFile(brought, JSON.stringify({ cookies: [{ ...cookie, expires: -1 }] }));
    const left = join(root, 'left.json');
    const first = await does([], { url: `${server.url}/cookies`, cookies: brought, saveCookies: left });
    expect(first.seen[0]!.elements.map(({ name }) => name)).to.include('Cookies: kim=was-here');
    expect((await stat(left)).mode & 0o777).to.equal(0o600);
    const second = await does([], { url: `${server.url}/cookies`, cookies: left });
    const words = second.seen[0]!.elements.map(({ name }) => name).join();
    expect(words).to.include('kim=was-here').and.include('visits=1');
    const none = await does([], { url: `${server.url}/cookies` });
    expect(none.seen[0]!.elements.map(({ name }) => name)).to.include('Cookies: none');
  });

  it('tells of cookies that are none', async () => {
    const file = join(root, 'broken.json');
    const broken = () => does([], { url: `${server.url}/cookies`, cookies: file });
    expect(await rejection(broken())).to.have.property('code', 'BOQ_FILE_NOT_FOUND');
    await writeFile(file, '[{"name": "kim"}]');
    expect(await rejection(broken())).to.have.property('code', 'BOQ_USAGE');
    await writeFile(file, 'kim=was-here');
    expect(String(await rejection(broken()))).to.include(file);
  });

  it('gives name and password where they are asked for, at the place where it begins only', async () => {
    const basicAuth = { username: 'kim', password: '{{door}}' };
    const secrets = { door: 'open sesame' };
    const { seen, text } = await does([click('button "Finish"')], {
      ...{ url: `${server.url}/password`, basicAuth, secrets },
    });
    expect(seen.at(-1)!.title).to.equal('after: done');
    expect(text).not.to.include('sesame');
    const wrong = await does([], { url: `${server.url}/password`, basicAuth, secrets: { door: 'sesame' } });
    expect(wrong.seen[0]!.events.join()).to.include('did not take the name and password');
    const elsewhere = await does([{ type: 'goto', url: `${server.otherUrl}/password` }], {
      ...{ url: `${server.url}/landing`, basicAuth, secrets, allowPrivate: true },
      actions: actionsWith('goto'),
    });
    expect(elsewhere.seen[1]!.events.join()).to.include('none is set for it');
  });

  it('keeps downloads and gives files', async () => {
    const downloads = join(root, 'downloads', 'here');
    const saved = async () => (await readdir(downloads)).includes('report.csv');
    const waits = Array.from({ length: 5 }, () => ({ type: 'wait' }));
    const { seen } = await does([click('link "Report"'), ...waits], {
      url: `${server.url}/to-download`,
      downloads,
      stuckAfter: 0,
    });
    expect(seen[1]!.events.join()).to.include('report.csv');
    expect(await saved()).to.equal(true);
    const uploads = fileURLToPath(new URL('../fixtures/uploads', import.meta.url));
    const give = { type: 'write', element: 'filefield "Photo"', text: 'hello.txt', submit: false };
    const given = await does([give, click('button "Finish"')], {
      url: fixtureUrl('traps/file.html'),
      uploads,
    });
    expect(given.seen.at(-1)!.title).to.equal('after: hello.txt');
    const refused = await does([give], { url: fixtureUrl('traps/file.html') });
    expect(refused.results[0]!.message).to.include('no upload folder');
    const missing = does([], { url: fixtureUrl('traps/file.html'), uploads: join(root, 'nowhere') });
    expect(await rejection(missing)).to.have.property('code', 'BOQ_FILE_NOT_FOUND');
  });

  it('sees more pixels at a higher scale, and hits the same elements', async () => {
    const { seen, results } = await does([click('button "In shadow"')], {
      url: fixtureUrl('pages/controls.html'),
      viewport: { width: 600, height: 500, deviceScaleFactor: 2 },
    });
    expect(seen[0]!.screenshot).to.include({ width: 1200, height: 1000 });
    expect(seen[0]!.viewport).to.deep.equal({ width: 600, height: 500, deviceScaleFactor: 2 });
    expect(results[0]!.ok).to.equal(true);
    expect(seen[1]!.title).to.equal('shadowed');
  });

  it('goes where it may, and nowhere else', async () => {
    const addresses = [`${server.otherUrl}/landing`, 'file:///etc/passwd', `${server.url}/landing`];
    const { results } = await does(
      addresses.map((url) => ({ type: 'goto', url })),
      { url: `${server.url}/links`, actions: actionsWith('goto') },
    );
    expect(results.map(({ ok }) => ok)).to.deep.equal([false, false, true, true]);
    expect(results[0]!.message).to.include('localhost is a private address');
    expect(results[1]!.message).to.include('file: addresses are refused');
    const local = await does([{ type: 'goto', url: 'file:///etc/passwd' }], {
      url: fixtureUrl('pages/windows.html'),
      actions: actionsWith('goto'),
    });
    expect(local.results[0]!.message).to.include('file: addresses are refused');
  });

  it('asks before it pays, deletes or sends, and goes on without', async () => {
    const asked: IrreversibleAction[] = [];
    const { results, seen } = await does(
      [
        click('button "Pay 20 €"'),
        click('button "Delete everything"'),
        { type: 'write', element: 'textbox "Voucher"', text: 'X', submit: true },
        { type: 'write', element: 'textbox "Message to the shop"', text: 'hi', submit: true },
        click('button "Publish"'),
        { type: 'write', element: 'textbox "Voucher"', text: 'X', submit: false },
        { type: 'press', key: 'Enter' },
        click('button "Show prices"'),
      ],
      {
        url: fixtureUrl('pages/checkout.html'),
        actions: actionsWith('press'),
        confirm: async (action) => {
          asked.push(action);
          return false;
        },
      },
    );
    expect(asked.map(({ kind, target }) => `${kind} ${target}`)).to.deep.equal([
      'pay button "Pay 20 €"',
      'delete button "Delete everything"',
      'pay button "Pay 20 €"',
      'send textbox "Message to the shop"',
      'send button "Publish"',
      'pay button "Pay 20 €"',
    ]);
    expect(asked[0]!.url).to.equal(fixtureUrl('pages/checkout.html'));
    expect(results.map(({ ok }) => ok)).to.deep.equal([
      ...[false, false, false, false, false],
      ...[true, false, true, true],
    ]);
    for (const { title } of seen.slice(0, -1)) expect(title).to.equal('Checkout');
    expect(seen.at(-1)!.title).to.equal('looked');
  });

  it('does what is confirmed', async () => {
    const { seen } = await does([click('button "Pay 20 €"')], {
      url: fixtureUrl('pages/checkout.html'),
      confirm: async ({ kind }) => kind === 'pay',
    });
    expect(seen[1]!.title).to.equal('paid');
  });

  it('shows what would be asked with secrets masked', async () => {
    const { observation } = await previewAgent({
      url: `${server.url}/landing?token=swordfish`,
      task: 'look',
      secrets: { token: 'swordfish' },
    });
    expect(observation.url).to.equal(`${server.url}/landing?token={{token}}`);
  });
});
