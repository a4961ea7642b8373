import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { ActionRegistry } from '../../ts/agent/actions/registry.js';
import { DomainPolicy } from '../../ts/agent/browser/domain-policy.js';
import { PageEnvironment } from '../../ts/agent/browser/environment.js';
import { Secrets } from '../../ts/agent/browser/secrets.js';
import type { Hands } from '../support/browser.js';
import { withPages } from '../support/browser.js';
import { startTrapServer, type TrapServer } from '../support/trap-server.js';

describe('safety', () => {
  let server: TrapServer;
  before(async () => {
    server = await startTrapServer();
  });
  after(() => server.close());

  describe('with only one domain allowed', () => {
    const onPage = withPages({ policy: new DomainPolicy({ allow: ['127.0.0.1'] }), size: 1 });
    const stays = (name: string, act: (hands: Hands) => Promise<unknown>) =>
      it(`does not follow ${name}`, () =>
        onPage(`${server.url}/links`, async (hands) => {
          await hands.observe();
          await act(hands);
          const { events, elements, tabs } = await hands.observe();
          expect(events.join('\n')).to.match(/was not loaded: /);
          const words = elements.map(({ name }) => name).join(' ');
          expect(words).not.to.match(/Landed|data$|blob$/);
          for (const tab of tabs) expect(tab.url).not.to.contain('localhost');
          // The agent can go on from there.
          await hands.act({ type: 'restart' });
          await hands.click('button "Finish"');
          expect(await hands.title()).to.equal('after: done');
        }));
    stays('a link to another domain', (hands) => hands.click('link "Away"'));
    stays('a redirect to another domain', (hands) => hands.click('link "Detour"'));
    stays('a link into a new tab', (hands) => hands.click('link "Away in a tab"'));
    stays('a page made of an address (blob)', (hands) => hands.click('button "Blob"'));

    it('does not load a frame of another domain', () =>
      onPage(`${server.url}/links`, async (hands) => {
        const { events, elements } = await hands.observe();
        expect(events.join()).to.include('was not loaded: localhost is not among');
        expect(elements.map(({ name }) => name)).not.to.include('Word');
        await hands.click('button "Data"');
        expect(await hands.evaluate('location.href')).to.equal(`${server.url}/links`);
      }));

    it('does not go to an address that is typed', () =>
      onPage(`${server.url}/links`, async (hands) => {
        for (const url of [
          `${server.otherUrl}/landing`,
          'file:///etc/passwd',
          'chrome://version',
          'data:text/html,x',
        ]) {
          const result = await hands.act({ type: 'goto', url });
          expect(result.ok, url).to.equal(false);
          expect(result.message).to.match(/did not load: /);
        }
        expect(await hands.evaluate('location.href')).to.equal(`${server.url}/links`);
      }));
  });

  describe('with everything allowed', () => {
    const folder = mkdtempSync(join(tmpdir(), 'boq-downloads-'));
    const onPage = withPages({ downloads: folder, size: 1 });
    after(() => rmSync(folder, { recursive: true }));

    it('follows the same links', () =>
      onPage(`${server.url}/links`, async (hands) => {
        await hands.click('link "Detour"');
        expect((await hands.observe()).url).to.equal(`${server.otherUrl}/landing`);
      }));

    it('keeps downloads where it is told to', () =>
      onPage(`${server.url}/to-download`, async (hands) => {
        await hands.click('link "Report"');
        const finished = () => readdirSync(folder).includes('report.csv');
        for (let turn = 0; turn < 20 && !finished(); turn++) await hands.act({ type: 'wait' });
        expect(readFileSync(join(folder, 'report.csv'), 'utf8')).to.equal('a,b\n1,2\n');
      }));

    it('types secrets that neither action, result nor observation shows', () =>
      onPage('pages/controls.html', async (hands) => {
        const secrets = new Secrets({
          name: 'Rumpelstiltskin',
          other: { value: 'verboten', domains: ['bank.example'] },
        });
        const environment = new PageEnvironment(hands.session, new ActionRegistry(), undefined, { secrets });
        const field = (await environment.observe()).elements.find(
          ({ description }) => description === 'textbox "Name"',
        );
        const point = { x: (field?.box.x ?? 0) + 5, y: (field?.box.y ?? 0) + 5 };
        const action = { type: 'write', element: 'textbox "Name"', text: '{{name}}', submit: true };
        const result = await environment.act(action, point);
        expect(result).to.deep.equal({
          ok: true,
          message: 'wrote "{{name}}" into textbox "Name" and pressed Enter',
        });
        expect(await hands.title()).to.contain('Rumpelstiltskin');
        const { screenshot, ...seen } = await environment.observe();
        expect(screenshot.width).to.equal(800);
        expect(JSON.stringify(seen)).to.contain('{{name}}').and.not.contain('Rumpelstiltskin');
        const refused = await environment.act({ ...action, text: '{{other}}' }, point);
        expect(refused.message).to.match(/the secret other may not be typed here/);
        expect(await hands.evaluate('document.querySelector("input").value')).to.equal('Rumpelstiltskin');
      }));
  });
});
