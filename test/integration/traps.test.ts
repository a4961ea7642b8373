import { readdirSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect } from 'chai';
import { type Hands, withPages } from '../support/browser.js';
import { startTrapServer, type TrapServer } from '../support/trap-server.js';
import { fileTraps, serverTraps, type Trap } from '../support/traps.js';

const fixture = (path: string): string => fileURLToPath(new URL(`../fixtures/${path}`, import.meta.url));

async function survive(trap: Trap, hands: Hands): Promise<void> {
  const told: string[] = [];
  const observe = hands.observe.bind(hands);
  hands.observe = async () => {
    const observation = await observe();
    told.push(...observation.events);
    return observation;
  };
  await trap.play(hands);
  await hands.observe();
  expect(await hands.title()).to.equal(trap.after);
  if (trap.events) expect(told.join('\n')).to.match(trap.events);
}

describe('trap pages', () => {
  const onPage = withPages({ uploads: fixture('uploads'), limits: { loadMs: 6000 } });
  let server: TrapServer;
  before(async () => {
    server = await startTrapServer();
  });
  after(() => server.close());

  it('are all played', () => {
    const helpers = ['landing', 'closing'];
    const pages = readdirSync(fixture('traps')).map((name) => name.replace('.html', ''));
    const played = new Set(fileTraps.map(({ page }) => page.slice('traps/'.length, -'.html'.length)));
    expect(pages.filter((page) => !played.has(page) && !helpers.includes(page))).to.deep.equal([]);
    expect(fileTraps.length + serverTraps.length).to.be.at.least(40);
  });

  for (const trap of fileTraps) {
    it(`survives ${trap.title}`, () => onPage(trap.page, (hands) => survive(trap, hands)));
  }
  for (const trap of serverTraps) {
    it(`survives ${trap.title}`, () => onPage(server.url + trap.page, (hands) => survive(trap, hands)));
  }
});
