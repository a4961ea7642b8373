/**
 * How late a timer of 10 ms comes while this process trains the paper's networks, while another program of the lowest
 * priority keeps every core busy, and while nothing runs; and for how long of it the event loop waited for a core, by
 * the kernel's own account. What remains is the timer's own grain and, in a virtual machine, its host's doing.
 *
 * usage: node --import tsx test/bench/event-loop.ts DATA [STEPS], with DATA as `python native/bench/iql/make_data.py
 * DATA --width 2048 --transitions 10000` writes it
 */
import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { availableParallelism, constants, setPriority, tmpdir } from 'node:os';
import { join } from 'node:path';
import { createHistogram, performance, type RecordableHistogram } from 'node:perf_hooks';
import { setTimeout as sleep } from 'node:timers/promises';
import { trainIql } from '../../ts/native/trainer.js';

const every = 10;

/** Histograms in nanoseconds. */
interface Lateness {
  late: RecordableHistogram;
  waited: RecordableHistogram;
}

/** Milliseconds that this thread has waited for a core so far. */
function waitedSoFar(): number {
  return Number(readFileSync('/proc/thread-self/schedstat', 'utf8').split(' ')[1]) / 1e6;
}

const nanoseconds = (milliseconds: number): number => Math.max(1, Math.round(1e6 * milliseconds));

/** Lateness of every timer until `work` ends. */
async function latenessDuring(work: Promise<unknown>): Promise<Lateness> {
  const lateness = { late: createHistogram(), waited: createHistogram() };
  let isDone = false;
  const watched = work.finally(() => {
    isDone = true;
  });
  while (!isDone) {
    const before = waitedSoFar();
    const due = performance.now() + every;
    await sleep(every);
    lateness.late.record(nanoseconds(performance.now() - due));
    lateness.waited.record(nanoseconds(waitedSoFar() - before));
  }
  await watched;
  return lateness;
}

/** Keeps every core busy from another program, at the lowest priority, for so many milliseconds. */
async function elsewhereBusy(milliseconds: number): Promise<void> {
  const programs = Array.from({ length: availableParallelism() }, () => {
    const program = spawn(process.execPath, ['-e', 'for (;;);']);
    setPriority(program.pid!, constants.priority.PRIORITY_LOW);
    return program;
  });
  await sleep(milliseconds);
  for (const program of programs) program.kill('SIGKILL');
}

const [data, steps = '300'] = process.argv.slice(2);
if (data === undefined)
  throw new Error('expected a folder of embeddings; the usage is at the top of this file');
const out = await mkdtemp(join(tmpdir(), 'boq-event-loop-'));
try {
  const config = { steps: Number(steps) };
  const request = { data: [data], out, device: 'cpu', config, resume: false };
  const rows = {
    training: await latenessDuring(trainIql(request)),
    'another program, lowest priority': await latenessDuring(elsewhereBusy(20_000)),
    idle: await latenessDuring(sleep(20_000)),
  };
  console.log(
    '| | timers | late by, ms: 50 % | 95 % | 99 % | longest | waited for a core, ms: 95 % | 99 % | longest |',
  );
  console.log('|---|---|---|---|---|---|---|---|---|');
  const ms = (histogram: RecordableHistogram, percent: number): string =>
    (histogram.percentile(percent) / 1e6).toFixed(1);
  for (const [name, { late, waited }] of Object.entries(rows)) {
    const lateness = [50, 95, 99, 100].map((percent) => ms(late, percent));
    const waits = [95, 99, 100].map((percent) => ms(waited, percent));
    console.log(`| ${[name, late.count, ...lateness, ...waits].join(' | ')} |`);
  }
} finally {
  await rm(out, { recursive: true, force: true });
}
