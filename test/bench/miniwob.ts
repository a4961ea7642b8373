/**
 * MiniWoB++ episodes a second with the page policy, screenshots and traces stored; and the same episodes, seed by seed
 * and action by action, through BrowserGym's environment, in turns.
 * usage: node --import tsx test/bench/miniwob.ts PYTHON [rounds] (PYTHON has browsergym-miniwob and playwright)
 */
import { spawn } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { cpus, tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { findBrowser, findHeadlessShell } from '../../ts/agent/browser/launch.js';
import { miniwobFolder } from '../../ts/core/setup-paths.js';
import { collect } from '../../ts/evaluation/collect.js';
import { openRun } from '../../ts/store/run.js';
import { descendants } from '../support/processes.js';

const tasks = [
  ...['click-button', 'click-link', 'click-option', 'click-tab-2', 'click-dialog'],
  ...['click-checkboxes', 'enter-text', 'enter-password', 'focus-text', 'login-user'],
];

interface Measured {
  episodes: number;
  steps: number;
  seconds: number;
  cpuSeconds: number;
}
interface Recorded {
  task: string;
  seed: number;
  reward: number;
  steps: [type: string, x: number, y: number, text: string, submit: boolean][];
}

/** Processes that ended stay at what they were last seen with. */
class ProcessorTime {
  readonly #seen = new Map<number, number>();
  readonly #own = process.cpuUsage();

  look(): void {
    for (const { pid, cpuSeconds } of descendants()) this.#seen.set(pid, cpuSeconds);
  }

  get seconds(): number {
    const { user, system } = process.cpuUsage(this.#own);
    return (user + system) / 1e6 + [...this.#seen.values()].reduce((sum, value) => sum + value, 0);
  }
}

async function ours(out: string, seeds: { from: number; to: number }, workers: number): Promise<Measured> {
  const time = new ProcessorTime();
  const { episodes, steps, seconds } = await collect({
    ...{ benchmark: 'miniwob', tasks, seeds, out, workers },
    selector: 'prompting',
    onProgress: () => time.look(),
  });
  return { episodes, steps, seconds, cpuSeconds: time.seconds };
}

async function recorded(folder: string): Promise<Recorded[]> {
  const all: Recorded[] = [];
  for await (const { record, steps } of (await openRun(folder)).episodes()) {
    const done = steps.map(({ candidates, selection, grounding }) => {
      const { action } = candidates[selection.index]!;
      const { x = 0, y = 0 } = grounding?.point ?? {};
      const step: Recorded['steps'][number] = [
        action.type,
        x,
        y,
        String(action['text'] ?? ''),
        action['submit'] === true,
      ];
      return step;
    });
    const { task, seed } = record.key;
    // What has no place cannot be replayed by coordinates.
    if (done.every(([type]) => type === 'click' || type === 'write')) {
      all.push({ task, seed, reward: record.reward, steps: done });
    }
  }
  return all;
}

function theirs(python: string, episodes: Recorded[], slow: boolean): Promise<Measured & { agreed: number }> {
  const script = fileURLToPath(new URL('browsergym_replay.py', import.meta.url));
  const child = spawn(python, [script], { stdio: ['pipe', 'pipe', 'inherit'] });
  // The same program that ours play in.
  const browser = findHeadlessShell() ?? findBrowser();
  const pages = `${pathToFileURL(join(miniwobFolder, 'miniwob')).href}/`;
  child.stdin.end(JSON.stringify({ browser, pages, slow, episodes }));
  let output = '';
  child.stdout.on('data', (data) => {
    output += data;
  });
  return new Promise((resolve, reject) => {
    child.once('error', reject);
    child.once('close', (code) =>
      code === 0 ? resolve(JSON.parse(output)) : reject(new Error(`${python} ended with ${code}`)),
    );
  });
}

const median = (values: number[]): number =>
  [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN;

const [python, rounds = '3'] = process.argv.slice(2);
if (!python) throw new Error('usage: node --import tsx test/bench/miniwob.ts PYTHON [rounds]');
const root = await mkdtemp(join(tmpdir(), 'boq-miniwob-'));
const results = new Map<string, Measured[]>();
const note = (name: string, measured: Measured): void => {
  results.set(name, [...(results.get(name) ?? []), measured]);
};
let agreed = 0;
let replayed = 0;
try {
  // Compiling, linking and the file system's caches belong to nobody's episodes.
  await collect({ benchmark: 'miniwob', tasks, seeds: { from: 0, to: 0 }, out: join(root, 'warm-up') });
  for (let round = 0; round < Number(rounds); round++) {
    const seeds = { from: 100 * (round + 1), to: 100 * (round + 1) + 4 };
    const folder = join(root, `one-${round}`);
    note('this package, one episode at a time', await ours(folder, seeds, 1));
    note('this package, six at a time (default)', await ours(join(root, `six-${round}`), seeds, 6));
    const episodes = (await recorded(folder)).filter((_, index) => index % 5 === round % 5);
    const plain = await theirs(python, episodes, true);
    note('BrowserGym as it comes', plain);
    const eager = await theirs(python, episodes, false);
    note('BrowserGym without its pauses', eager);
    agreed += plain.agreed + eager.agreed;
    replayed += plain.episodes + eager.episodes;
  }
  process.stdout.write(
    `${rounds} rounds in turns; ${tasks.length} tasks; ${cpus().length} cores of ${cpus()[0]?.model ?? 'unknown'}. ` +
      `Of ${replayed} replayed episodes ${agreed} ended as they were recorded.\n\n` +
      '| | episodes a round | steps an episode | episodes/s, median (range) | CPU seconds an episode, median (range) |\n' +
      '|---|---|---|---|---|\n',
  );
  for (const [name, all] of results) {
    const rates = all.map(({ episodes, seconds }) => episodes / seconds);
    const costs = all.map(({ episodes, cpuSeconds }) => cpuSeconds / episodes);
    const spread = (values: number[], digits: number): string =>
      `${median(values).toFixed(digits)} (${Math.min(...values).toFixed(digits)} to ${Math.max(...values).toFixed(digits)})`;
    const each =
      all.reduce((sum, one) => sum + one.steps, 0) / all.reduce((sum, one) => sum + one.episodes, 0);
    process.stdout.write(
      `| ${name} | ${all[0]!.episodes} | ${each.toFixed(2)} | ${spread(rates, 2)} | ${spread(costs, 2)} |\n`,
    );
  }
} finally {
  await rm(root, { recursive: true });
}
