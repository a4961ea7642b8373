/**
 * How late a timer of 10 ms comes while this process trains the paper's networks, and while it does nothing.
 *
 * usage: node --import tsx test/bench/event-loop.ts DATA [STEPS], with DATA as `python native/bench/iql/make_data.py
 * DATA --width 2048 --transitions 10000` writes it
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createHistogram, performance, type RecordableHistogram } from 'node:perf_hooks';
import { setTimeout as sleep } from 'node:timers/promises';
import { trainIql } from '../../ts/native/trainer.js';

const every = 10;

/** Lateness in nanoseconds of every timer until `work` ends. */
async function latenessDuring(work: Promise<unknown>): Promise<RecordableHistogram> {
  const lateness = createHistogram();
  let isDone = false;
  const watched = work.finally(() => {
    isDone = true;
  });
  while (!isDone) {
    const due = performance.now() + every;
    await sleep(every);
    lateness.record(Math.max(1, Math.round(1e6 * (performance.now() - due))));
  }
  await watched;
  return lateness;
}

const [data, steps = '300'] = process.argv.slice(2);
if (data === undefined)
  throw new Error('expected a folder of embeddings; the usage is at the top of this file');
const out = await mkdtemp(join(tmpdir(), 'boq-event-loop-'));
try {
  const config = { steps: Number(steps) };
  const request = { data: [data], out, device: 'cpu', config, resume: false };
  const training = await latenessDuring(trainIql(request));
  const idle = await latenessDuring(sleep(10_000));
  const ms = (nanoseconds: number): string => (nanoseconds / 1e6).toFixed(1);
  console.log('| | timers | late by, median ms | 99 % | longest |\n|---|---|---|---|---|');
  for (const [name, lateness] of Object.entries({ training, idle })) {
    const { count, max } = lateness;
    const [median, most] = [lateness.percentile(50), lateness.percentile(99)];
    console.log(`| ${name} | ${count} | ${ms(median)} | ${ms(most)} | ${ms(max)} |`);
  }
} finally {
  await rm(out, { recursive: true, force: true });
}
