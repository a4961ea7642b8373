/** Progress on stderr: a bar on a terminal, a plain line now and then elsewhere. */
import { SingleBar } from 'cli-progress';

export interface Progress {
  /** @param done of the total; @param note a few words, e.g. the success rate so far */
  update(done: number, note?: string): void;
  /** For totals that become known, or grow, on the way. */
  setTotal(total: number): void;
  /** Ends the bar; safe to call twice. */
  stop(): void;
}

export interface ProgressOptions {
  stream?: NodeJS.WriteStream;
  /** No output at all. */
  quiet?: boolean;
}

/** Starts one line of progress; rate and time left are measured from now. */
export function startProgress(label: string, total: number, options: ProgressOptions = {}): Progress {
  const stream = options.stream ?? process.stderr;
  if (options.quiet) return { update() {}, setTotal() {}, stop() {} };
  return stream.isTTY ? terminalBar(label, total, stream) : plainLines(label, total, stream);
}

function terminalBar(label: string, total: number, stream: NodeJS.WriteStream): Progress {
  const started = performance.now();
  const bar = new SingleBar({
    format: `${label.padEnd(24)} {bar} {percentage} % {value}/{total} {rate} {eta_formatted} {note}`,
    stream,
    fps: 5,
    hideCursor: true,
    barsize: 28,
    barCompleteChar: '█',
    barIncompleteChar: '░',
    etaBuffer: 100,
    gracefulExit: false,
  });
  bar.start(total, 0, { rate: '', note: '' });
  let first: number | undefined;
  return {
    update(done, note) {
      // Work that a resumed stage finds done already says nothing about its speed.
      first ??= done;
      const seconds = (performance.now() - started) / 1000;
      const rate = done > first ? `${((done - first) / seconds).toFixed(1)}/s` : '';
      bar.update(done, note === undefined ? { rate } : { rate, note });
    },
    setTotal: (value) => bar.setTotal(value),
    stop: () => bar.stop(),
  };
}

/** A line at every tenth of the work, so that a log stays short; a count that begins anew is told anew. */
function plainLines(label: string, total: number, stream: NodeJS.WriteStream): Progress {
  let current = total;
  let told = -1;
  let last = { done: 0, note: '' };
  const tell = (): void => {
    const share = current > 0 ? ` (${Math.floor((100 * last.done) / current)} %)` : '';
    stream.write(`${label}: ${last.done}/${current}${share}${last.note && ` ${last.note}`}\n`);
  };
  return {
    update(done, note) {
      last = { done, note: note ?? last.note };
      const tenth = current > 0 ? Math.floor((10 * done) / current) : 0;
      if (tenth !== told) {
        told = tenth;
        tell();
      }
    },
    setTotal(value) {
      current = value;
    },
    stop() {
      if (told >= 0 && told < 10 && last.done > 0) tell();
      told = 10;
    },
  };
}

/** One bar for each stage, in turn. */
export function stageBars(quiet: boolean): {
  show(stage: string, total: number, done: number, note: string): void;
  stop(): void;
} {
  let current: { stage: string; bar: Progress } | null = null;
  return {
    show(stage, total, done, note) {
      if (current?.stage !== stage) {
        current?.bar.stop();
        current = { stage, bar: startProgress(stage, total, { quiet }) };
      }
      current.bar.setTotal(total);
      current.bar.update(done, note);
    },
    stop: () => current?.bar.stop(),
  };
}
