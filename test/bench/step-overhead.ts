/**
 * What one step costs beside the model's thinking and the page's settling, at 1280 by 720: observing, embedding,
 * scoring, choosing, grounding, input, and writing the trace. usage: node --import tsx test/bench/step-overhead.ts
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { cpus, tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { ActionRegistry } from '../../ts/agent/actions/registry.js';
import { DomainPolicy } from '../../ts/agent/browser/domain-policy.js';
import { PageEnvironment } from '../../ts/agent/browser/environment.js';
import { BrowserPool } from '../../ts/agent/browser/pool.js';
import type { BrowserSession } from '../../ts/agent/browser/session.js';
import { PageLocalizer } from '../../ts/agent/localizer/page.js';
import { runEpisode } from '../../ts/agent/loop.js';
import { LoopGuard } from '../../ts/agent/loop-guard.js';
import { createSelector } from '../../ts/agent/selectors/registry.js';
import type { Critic, Proposer } from '../../ts/agent/types.js';
import { agentScreenshot } from '../../ts/agent/window.js';
import { randomSource } from '../../ts/core/random.js';
import { collect } from '../../ts/evaluation/collect.js';
import { ModelSet } from '../../ts/evaluation/models.js';
import { embedRun } from '../../ts/learning/embed-run.js';
import { Embedder } from '../../ts/learning/embedder.js';
import { openRunSource } from '../../ts/learning/run-source.js';
import { train } from '../../ts/learning/train.js';
import { FolderRun } from '../../ts/store/run.js';
import { tinyCheckpoint } from '../support/checkpoint.js';
import { packageRoot } from '../support/native.js';
import { descendants } from '../support/processes.js';

const viewport = { width: 1280, height: 720, deviceScaleFactor: 1 };
const warmUp = 20;
const measured = 100;

interface Page {
  name: string;
  url: string;
  elements: readonly string[];
}

const pageUrl = (path: string): string => pathToFileURL(join(packageRoot, path)).href;
const pages: readonly Page[] = [
  {
    name: 'tea shop',
    url: pageUrl('examples/pages/tea-shop.html'),
    elements: ['checkbox "Sugar"', 'checkbox "Lemon"', 'checkbox "Biscuits"'],
  },
  {
    name: 'table of orders',
    url: pageUrl('test/fixtures/pages/dense.html'),
    elements: ['checkbox "paid 1"', 'checkbox "paid 2"', 'checkbox "paid 3"'],
  },
];

/** Three candidates at once, in an order that turns: what a model says does not matter here. */
function turning(elements: readonly string[]): Proposer {
  return {
    name: 'turning',
    async *propose({ history }) {
      for (let index = 0; index < elements.length; index++) {
        const element = elements[(history.length + index) % elements.length]!;
        const thought = `step ${history.length}: the box is not as it should be`;
        yield { type: 'candidate', candidate: { action: { type: 'click', element }, thought, note: '' } };
      }
    },
  };
}

const cpuOf = (): { own: number; browser: number } => ({
  own: process.cpuUsage().user / 1000 + process.cpuUsage().system / 1000,
  browser: descendants().reduce((sum, { cpuSeconds }) => sum + 1000 * cpuSeconds, 0),
});

const quantile = (values: readonly number[], share: number): number =>
  [...values].sort((a, b) => a - b)[Math.min(values.length - 1, Math.floor(share * values.length))] ??
  Number.NaN;

/** Waiting for the page, counted apart. */
function timeSettling(session: BrowserSession): { take(): number } {
  const settle = session.settle.bind(session);
  let spent = 0;
  session.settle = async () => {
    const begun = performance.now();
    await settle();
    spent += performance.now() - begun;
  };
  return {
    take: () => {
      const taken = spent;
      spent = 0;
      return taken;
    },
  };
}

async function measure(page: Page, critic: Critic, id: string, root: string): Promise<string[]> {
  const policy = new DomainPolicy({ start: page.url });
  await using pool = new BrowserPool({ size: 1, viewport, screenshot: agentScreenshot, policy });
  const run = await FolderRun.create(join(root, page.name), { kind: 'agent', config: {}, seed: 0 });
  const rows: Record<string, number>[] = [];
  let used = { own: 0, browser: 0 };
  let elements = 0;
  await pool.use(async (session) => {
    await session.begin(page.url);
    const settling = timeSettling(session);
    const environment = new PageEnvironment(session, new ActionRegistry());
    const key = { benchmark: 'bench', task: page.name, seed: 0, policy: 'turning', selector: 'best-of-q' };
    const attempt = await run.begin(
      { ...key, generation: id, repeat: 0 },
      { instruction: 'tick', startUrl: page.url },
    );
    let writing = 0;
    let begun = performance.now();
    let before = cpuOf();
    await runEpisode({
      episode: { instruction: 'Tick what belongs together.', startUrl: page.url, environment },
      proposer: turning(page.elements),
      selector: createSelector('best-of-q'),
      localizer: new PageLocalizer(),
      critic,
      n: 3,
      limits: { maxSteps: warmUp + measured, maxMs: Number.POSITIVE_INFINITY },
      random: (step, purpose) => randomSource([step, purpose]),
      guard: new LoopGuard({ stopAfter: 1000 }),
      recorder: {
        shot: (name, screenshot) => attempt.shot(name, screenshot),
        step: async (record) => {
          const written = performance.now();
          await attempt.step(record);
          writing = performance.now() - written;
        },
      },
      onEvent: (event) => {
        if (event.type === 'observed') elements = event.observation.elements.length;
      },
      afterStep: async ({ index, timings }) => {
        const settled = settling.take();
        const total = performance.now() - begun;
        if (index === warmUp - 1) before = cpuOf();
        if (index >= warmUp) {
          const { act = 0, ...phases } = timings;
          rows.push({ ...phases, act: act - settled, write: writing, total: total - settled, settled });
        }
        if (index === warmUp + measured - 1) {
          const after = cpuOf();
          used = {
            own: (after.own - before.own) / measured,
            browser: (after.browser - before.browser) / measured,
          };
        }
        begun = performance.now();
      },
    });
    await attempt.abandon();
  });
  const cell = (name: string): string => {
    const values = rows.map((row) => row[name] ?? 0);
    return `${quantile(values, 0.5).toFixed(1)} (${quantile(values, 0.95).toFixed(1)})`;
  };
  const columns = ['total', 'observe', 'propose', 'score', 'select', 'ground', 'act', 'write', 'settled'];
  return [
    `${page.name}, ${elements} elements`,
    ...columns.map(cell),
    used.own.toFixed(0),
    used.browser.toFixed(0),
  ];
}

const root = await mkdtemp(join(tmpdir(), 'boq-bench-'));
try {
  const checkpoint = await tinyCheckpoint();
  const data = join(root, 'data');
  await collect({ benchmark: 'miniwob', tasks: ['click-button'], seeds: { from: 0, to: 5 }, out: data });
  {
    await using embedder = await Embedder.load({ path: checkpoint });
    await embedRun(await openRunSource(data), embedder);
  }
  // The networks at the method's own size: scoring costs what it costs in use.
  await train({ data: [data], out: join(root, 'model'), config: { steps: 5, validationFraction: 0 } });
  await using models = new ModelSet({ embedder: checkpoint });
  const { critic, id } = await models.open(join(root, 'model'));
  process.stdout.write(
    `${measured} steps after ${warmUp}, ${viewport.width} by ${viewport.height}, 3 candidates; ${cpus().length} cores of ` +
      `${cpus()[0]?.model ?? 'unknown'}. Milliseconds, median (95th percentile).\n\n` +
      '| page | whole step | observe | propose | score | select | ground | input | write | settling, not in it | CPU ms a step: ours | browser |\n' +
      `|${'---|'.repeat(12)}\n`,
  );
  for (const page of pages) {
    process.stdout.write(`| ${(await measure(page, critic, id, root)).join(' | ')} |\n`);
  }
} finally {
  await rm(root, { recursive: true });
}
