import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { Scorer } from '../../ts/native/scorer.js';
import type { NativeTrainProgress } from '../../ts/native/surface.js';
import { trainIql } from '../../ts/native/trainer.js';
import { FakeEmbedder, fakeWidth } from '../support/fake-run.js';
import { codeOf } from '../support/native.js';
import { embeddedRun, trainRequest } from '../support/trained.js';

/** More steps than any test waits for. */
const endless = 100_000_000;

/** Milliseconds of a thread's turn, where the kernel tells. */
function sliceOf(thread: string): number | undefined {
  const path = `/proc/self/task/${thread}/sched`;
  const slice = existsSync(path) && /^se\.slice\s*:\s*(\d+)$/m.exec(readFileSync(path, 'utf8'));
  return slice ? Number(slice[1]) / 1e6 : undefined;
}

class OtherEmbedder extends FakeEmbedder {
  override readonly fingerprint = 'other000other000' as FakeEmbedder['fingerprint'];
}

describe('training', () => {
  let folder: string;
  let data: string;
  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'boq-training-'));
    data = await embeddedRun(join(folder, 'run'));
  });
  after(() => rm(folder, { recursive: true }));

  /** Trains without end, and aborts with the first progress. */
  async function stopped(out: string, resume: boolean) {
    const controller = new AbortController();
    const seen: NativeTrainProgress[] = [];
    const summary = await trainIql(
      { ...trainRequest(data, out, { steps: endless }), resume },
      {
        signal: controller.signal,
        onProgress: (progress) => {
          seen.push(progress);
          controller.abort();
        },
      },
    );
    return { summary, seen };
  }

  it('tells of its progress: rising steps, finite metrics, the last step always', async () => {
    const seen: NativeTrainProgress[] = [];
    const steps = 3000;
    const summary = await trainIql(trainRequest(data, join(folder, 'progress'), { steps }), {
      onProgress: (progress) => seen.push(progress),
    });
    expect(summary).to.include({ steps, stopped: false });
    expect(seen.at(-1)).to.include({ step: steps, steps });
    const counts = seen.map(({ step }) => step);
    expect(counts).to.deep.equal([...counts].sort((a, b) => a - b));
    expect(seen.length).to.be.at.most(10 * summary.seconds + 2);
    for (const { metrics } of seen) {
      expect(metrics).to.include.keys('loss/v', 'loss/q', 'value/q_mean', 'lr');
      for (const value of Object.values(metrics)) expect(value).to.satisfy(Number.isFinite);
    }
    // The projections and the layers of three inputs for Q, of two for V.
    const projection = 8 * fakeWidth + 8;
    expect(summary.parameters.q).to.equal(3 * projection + (24 * 8 + 8) + (8 + 1));
    expect(summary.parameters.v).to.equal(2 * projection + (16 * 8 + 8) + (8 + 1));
  });

  it('stops cleanly when it is aborted, with a model that scores and a checkpoint that goes on', async () => {
    const out = join(folder, 'stopped');
    const first = await stopped(out, false);
    expect(first.summary.stopped).to.equal(true);
    expect(first.summary.steps).to.be.within(1, endless - 1);
    expect(JSON.parse(await readFile(join(out, 'config.json'), 'utf8')).steps).to.equal(first.summary.steps);
    await using scorer = await Scorer.load({ path: out, device: 'cpu' });
    expect(scorer.info.width).to.equal(fakeWidth);

    const second = await stopped(out, true);
    expect(second.seen[0]!.step).to.be.above(first.summary.steps);
    expect(second.summary.steps).to.be.above(first.summary.steps);
  });

  it('gives the same model whether it was stopped in between or not', async () => {
    const steps = 4000;
    const whole = join(folder, 'whole');
    const parts = join(folder, 'parts');
    await trainIql(trainRequest(data, whole, { steps }));
    const controller = new AbortController();
    const request = trainRequest(data, parts, { steps });
    const onProgress = () => controller.abort();
    const part = await trainIql(request, { signal: controller.signal, onProgress });
    expect(part.stopped).to.equal(true);
    await trainIql({ ...request, resume: true });
    const weights = (out: string) => readFile(join(out, 'model.safetensors'));
    expect((await weights(parts)).equals(await weights(whole))).to.equal(true);
  });

  it('does not begin for a signal that was aborted before, nor behind another job', async () => {
    const out = join(folder, 'never');
    const request = trainRequest(data, out, { steps: endless });
    expect(await codeOf(() => trainIql(request, { signal: AbortSignal.abort() }))).to.equal('BOQ_ABORTED');
    const running = new AbortController();
    const waiting = new AbortController();
    const first = trainIql(trainRequest(data, join(folder, 'running'), { steps: endless }), {
      signal: running.signal,
      onProgress: () => waiting.abort(),
    });
    expect(await codeOf(() => trainIql(request, { signal: waiting.signal }))).to.equal('BOQ_ABORTED');
    running.abort();
    expect((await first).stopped).to.equal(true);
    expect(await readdir(folder)).to.not.include('never');
  });

  it('asks for longer turns of the processor than the thread that waits, so that this one goes first', async () => {
    const turns = new Set<number | undefined>();
    const controller = new AbortController();
    await trainIql(trainRequest(data, join(folder, 'background'), { steps: endless }), {
      signal: controller.signal,
      onProgress: () => {
        for (const id of readdirSync('/proc/self/task')) {
          const name = readFileSync(`/proc/self/task/${id}/comm`, 'utf8').trim();
          if (name === 'boq background') turns.add(sliceOf(id));
        }
        controller.abort();
      },
    });
    const own = sliceOf(String(process.pid));
    expect([...turns]).to.deep.equal([own === undefined ? undefined : 10]);
    if (own !== undefined) expect(own).to.be.below(10);
  });

  it('stops when the progress callback throws, and rejects with what it threw', async () => {
    const thrown = new RangeError('from the callback');
    let calls = 0;
    const out = join(folder, 'throwing');
    const error = await trainIql(trainRequest(data, out, { steps: endless }), {
      onProgress: () => {
        calls += 1;
        throw thrown;
      },
    }).catch((cause: unknown) => cause);
    expect(error).to.equal(thrown);
    expect(calls).to.equal(1);
    expect(await readdir(out)).to.include('checkpoint');
    // The device is free again.
    expect((await trainIql(trainRequest(data, out, { steps: 5 }))).steps).to.equal(5);
  });

  it('leaves the event loop free', async () => {
    let turns = 0;
    let isDone = false;
    const turn = (): void => {
      turns += 1;
      if (!isDone) setImmediate(turn);
    };
    setImmediate(turn);
    await trainIql(trainRequest(data, join(folder, 'loop'), { steps: 2000 }));
    isDone = true;
    expect(turns).to.be.above(100);
  });

  it('trains several models at once, on outcomes judged again', async () => {
    const out = join(folder, 'several');
    const lines = (await readFile(join(data, 'episodes.jsonl'), 'utf8')).trim().split('\n');
    const labels = join(folder, 'labels.jsonl');
    const judged = lines.map((line, i) =>
      JSON.stringify({ key: JSON.parse(line).key, success: i % 3 === 0 }),
    );
    await writeFile(labels, judged.join('\n'));
    const request = {
      ...trainRequest(data, out, { steps: 20 }),
      labels,
      seeds: 2,
      sweep: { tau: [0.6, 0.7] },
    };
    const { models, stopped } = await trainIql(request);
    expect(stopped).to.equal(false);
    expect(models.map(({ name }) => name)).to.deep.equal([
      'tau-0.6-seed-0',
      'tau-0.6-seed-1',
      'tau-0.7-seed-0',
      'tau-0.7-seed-1',
    ]);
    for (const { name, steps } of models) {
      expect(steps).to.equal(20);
      const config = JSON.parse(await readFile(join(out, name, 'config.json'), 'utf8'));
      expect(config.labels.episodes).to.equal(lines.length);
      expect(config.config.tau).to.equal(name.startsWith('tau-0.6') ? 0.6 : 0.7);
      await using scorer = await Scorer.load({ path: join(out, name), device: 'cpu' });
      expect(scorer.info.width).to.equal(fakeWidth);
    }
    expect(await codeOf(() => trainIql({ ...request, seeds: 0 }))).to.equal('BOQ_INVALID_ARGUMENT');
    expect(await codeOf(() => trainIql({ ...request, sweep: { taus: [1] } }))).to.equal('BOQ_CONFIG_INVALID');
    await writeFile(labels, `${judged[0]}\n${judged[0]}\n`);
    expect(await codeOf(() => trainIql(request))).to.equal('BOQ_DATA_INVALID');
  });

  it('refuses settings that do not exist or make no sense, and data that do not belong together', async () => {
    const out = join(folder, 'refused');
    const withConfig = (config: Record<string, number>) => () => trainIql(trainRequest(data, out, config));
    expect(await codeOf(withConfig({ taus: 0.7 }))).to.equal('BOQ_CONFIG_INVALID');
    expect(await codeOf(withConfig({ tau: 1.5 }))).to.equal('BOQ_CONFIG_INVALID');
    expect(await codeOf(withConfig({ steps: -1 }))).to.equal('BOQ_CONFIG_INVALID');
    expect(await codeOf(withConfig({ tau: Number.NaN }))).to.equal('BOQ_INVALID_ARGUMENT');
    const other = await embeddedRun(join(folder, 'other'), new OtherEmbedder());
    const mixed = { ...trainRequest(data, out, { steps: 5 }), data: [data, other] };
    const error = await trainIql(mixed).catch((cause: Error & { code: string }) => cause);
    expect(error).to.include({ code: 'BOQ_FINGERPRINT_MISMATCH' });
    expect((error as Error).message)
      .to.include('fake0000')
      .and.include('other000');
  });
});
