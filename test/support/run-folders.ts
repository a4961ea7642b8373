import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import sharp from 'sharp';
import type { Results } from '../../ts/evaluation/results.js';
import { FolderRun } from '../../ts/store/run.js';
import type { EpisodeRecord, RunRecord } from '../../ts/store/types.js';

export interface EpisodeSpec {
  task: string;
  seed: number;
  selector: string;
  success: boolean;
  generation?: string;
  policy?: string;
  /** Index executed in the only step. */
  chosen?: number;
}

/** Writes a run folder as the runner leaves it, one step an episode. */
export async function writeRun(
  path: string,
  kind: RunRecord['kind'],
  specs: readonly EpisodeSpec[],
): Promise<EpisodeRecord[]> {
  const run = await FolderRun.create(path, { kind, config: { policy: 'page', n: 3 }, seed: 0 });
  const bytes = await sharp({ create: { width: 332, height: 214, channels: 3, background: '#fff' } })
    .png()
    .toBuffer();
  const records: EpisodeRecord[] = [];
  for (const { task, seed, selector, success, generation = 'none', policy = 'page', chosen = 0 } of specs) {
    const attempt = await run.begin(
      { benchmark: 'miniwob', task, seed, policy, selector, generation, repeat: 0 },
      { instruction: `Solve ${task}.`, startUrl: 'file:///page.html' },
    );
    const screenshot = attempt.shot('000', { bytes, format: 'png' });
    await attempt.step({
      index: 0,
      observation: {
        url: 'file:///page.html',
        title: '',
        viewport: { width: 332, height: 214, deviceScaleFactor: 1 },
        scroll: { x: 0, y: 0 },
        screenshot,
        events: [],
      },
      candidates: [
        { action: { type: 'click', element: 'button "A"' }, thought: 'a button', note: '' },
        { action: { type: 'click', element: 'button "B"' }, thought: 'named in the task', note: '' },
      ],
      candidateErrors: [],
      scores: generation === 'none' ? null : { q: [0.1, 0.9], spread: [0, 0], v: 0.4 },
      selection: { selector, index: chosen, reason: 'test' },
      grounding: { localizer: 'page', point: { x: 10, y: 20 }, element: 'button "A"' },
      result: { ok: true, message: `clicked ${chosen}` },
      usage: [],
      timings: {},
    });
    const { record } = await attempt.commit({
      outcome: success ? 'success' : 'failure',
      reward: Number(success),
      rawReward: success ? 1 : -1,
      answer: null,
      finalObservation: null,
    });
    records.push(record);
  }
  return records;
}

export async function writeResults(path: string, changes: Partial<Results> = {}): Promise<void> {
  const results: Results = {
    version: 1,
    benchmark: 'miniwob',
    tasks: ['alpha', 'beta'],
    seeds: { from: 20_000, to: 20_001 },
    repeats: 1,
    policy: 'page',
    n: 3,
    models: [],
    entries: [
      { label: 'prompting', selector: 'prompting', generation: 'none', chosenMargin: null },
      ...(changes.models ?? []).map(({ id, control }) => ({
        label: control ? `best-of-q (${control})` : 'best-of-q',
        selector: 'best-of-q',
        generation: id,
        chosenMargin: null,
      })),
    ],
    estimand: 'unseen-seeds',
    baseline: 'prompting',
    selectors: {},
    ...changes,
  };
  await writeJson(join(path, 'results.json'), results);
}

export async function writeModel(path: string, data: string[]): Promise<void> {
  await mkdir(path, { recursive: true });
  await writeJson(join(path, 'config.json'), {
    version: 1,
    kind: 'iql',
    steps: 100,
    config: { tau: 0.7, lr: 0.0003 },
    data: data.map((folder) => ({ path: folder })),
  });
  const lines = Array.from({ length: 1000 }, (_, step) =>
    JSON.stringify({ step, 'loss/q': 1 / (step + 1), constant: 3 }),
  );
  await writeFile(join(path, 'metrics.jsonl'), `${lines.join('\n')}\n`);
}

async function writeJson(path: string, value: unknown): Promise<void> {
  await writeFile(path, JSON.stringify(value));
}
