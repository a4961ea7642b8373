/** A process of its own for the store's tests: races for keys, or writes until it is killed. */
import { FolderRun } from '../../../ts/store/run.js';
import type { EpisodeKey } from '../../../ts/store/types.js';

const [mode, folder = ''] = process.argv.slice(2);
const run = await FolderRun.create(folder, { kind: 'collect', config: {}, seed: 1 });
const start = { instruction: 'click', startUrl: 'file:///page.html' };
const base = { benchmark: 'miniwob', task: 'click-button', policy: 'page', selector: 'random' };
const key = (seed: number): EpisodeKey => ({ ...base, seed, generation: 'none', repeat: 0 });

if (mode === 'race') {
  const wins = await Promise.all(
    Array.from({ length: 20 }, async (_, seed) => {
      const attempt = await run.begin(key(seed), start);
      const end = {
        outcome: 'failure',
        reward: 0,
        rawReward: 0,
        answer: null,
        finalObservation: null,
      } as const;
      return (await attempt.commit(end)).counts;
    }),
  );
  process.send?.(wins.filter(Boolean).length);
  process.disconnect();
} else {
  const attempt = await run.begin(key(3), start);
  for (let index = 0; ; index++) {
    const screenshot = attempt.shot(String(index).padStart(3, '0'), {
      bytes: new Uint8Array(5000),
      format: 'webp',
    });
    await attempt.step({
      index,
      observation: {
        url: 'file:///page.html',
        title: '',
        viewport: { width: 332, height: 214, deviceScaleFactor: 1 },
        scroll: { x: 0, y: 0 },
        screenshot,
        events: [],
      },
      candidates: [{ action: { type: 'wait' }, thought: 'x'.repeat(2000), note: '' }],
      candidateErrors: [],
      scores: null,
      selection: { selector: 'random', index: 0, reason: 'drawn' },
      grounding: null,
      result: { ok: true, message: 'waited' },
      usage: [],
      timings: {},
    });
    if (index === 20) process.send?.('writing');
  }
}
