/**
 * Every trap page, played by this agent's hands and by a plain loop on Puppeteer (plain-loop.ts), each in a browser of
 * its own. usage: node --import tsx test/bench/traps.ts [words of a title]
 */
import { fileURLToPath } from 'node:url';
import { BrowserPool } from '../../ts/agent/browser/pool.js';
import { Hands as AgentHands, fixtureUrl } from '../support/browser.js';
import { descendants } from '../support/processes.js';
import { startTrapServer } from '../support/trap-server.js';
import { fileTraps, type Hands, serverTraps, type Trap } from '../support/traps.js';
import { PlainLoop } from './plain-loop.js';

const patienceMs = 60_000;

interface Player extends Hands {
  title(): Promise<string>;
}

async function patiently<T>(work: Promise<T>): Promise<T | 'hangs'> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<'hangs'>((resolve) => {
    timer = setTimeout(resolve, patienceMs, 'hangs');
  });
  work.catch(() => undefined);
  return Promise.race([work, late]).finally(() => clearTimeout(timer));
}

/** 'yes', or what happened instead. */
async function play(trap: Trap, player: Player): Promise<string> {
  try {
    const ended = await patiently(
      (async () => {
        await trap.play(player);
        return player.title();
      })(),
    );
    if (ended === 'hangs') return `no answer within ${patienceMs / 1000} s`;
    return ended === trap.after ? 'yes' : `wrong state: "${ended.replace(/^after: /, '').slice(0, 40)}"`;
  } catch (error) {
    return shortly(error);
  }
}

const shortly = (error: unknown): string =>
  `error: ${String((error as Error).message ?? error)
    .split('\n')[0]
    ?.replace(/https?:\/\/\S+/g, 'URL')
    .replace(/::-p-\w+\(.*\)/, 'the element')
    .slice(0, 90)}`;

async function agent(trap: Trap, url: string): Promise<string> {
  const uploads = fileURLToPath(new URL('../fixtures/uploads', import.meta.url));
  const pool = new BrowserPool({ size: 1, viewport: { width: 800, height: 700 }, uploads });
  try {
    return await pool.use(async (session) => {
      await session.begin(url);
      const hands = new AgentHands(session);
      return play(trap, hands);
    });
  } catch (error) {
    return shortly(error);
  } finally {
    await pool.close();
  }
}

async function plain(trap: Trap, url: string): Promise<string> {
  const loop = await PlainLoop.start();
  try {
    const opened = await patiently(loop.open(url));
    return opened === 'hangs' ? `no answer within ${patienceMs / 1000} s` : await play(trap, loop);
  } catch (error) {
    return shortly(error);
  } finally {
    await loop.close();
  }
}

const before = descendants().length;
const server = await startTrapServer();
const wanted = process.argv.slice(2).join(' ');
const traps = [...fileTraps, ...serverTraps].filter(({ title }) => title.includes(wanted));
const passed = { agent: 0, plain: 0 };
process.stdout.write('| page | this agent | plain Puppeteer |\n|---|---|---|\n');
for (const trap of traps) {
  const url = trap.page.startsWith('/') ? server.url + trap.page : fixtureUrl(trap.page);
  const results = { agent: await agent(trap, url), plain: await plain(trap, url) };
  for (const who of ['agent', 'plain'] as const) if (results[who] === 'yes') passed[who]++;
  process.stdout.write(`| ${trap.title} | ${results.agent} | ${results.plain} |\n`);
}
process.stdout.write(
  `\n${traps.length} pages: this agent ${passed.agent}, plain Puppeteer ${passed.plain}. ` +
    `Processes left behind: ${descendants().length - before}.\n`,
);
await server.close();
