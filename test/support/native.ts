/** What the binding tests share: the addon itself, a tiny embedder, work that takes a while, child processes. */
import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { NativeEmbedder } from '../../ts/native/embedder.js';
import type { NativeEmbedderOptions, NativeEmbedItem } from '../../ts/native/surface.js';
import { tinyCheckpoint } from './checkpoint.js';

export const packageRoot = fileURLToPath(new URL('../../', import.meta.url));

export async function tinyOptions(): Promise<NativeEmbedderOptions> {
  return {
    path: await tinyCheckpoint(),
    device: 'cpu',
    dtype: 'float32',
    pooling: 'mean',
    l2: false,
    hiddenLayer: -1,
    minPixels: 3136,
    maxPixels: 100_352,
    reuse: { prefixes: true, images: true, windows: true, megabytes: 64 },
  };
}

export async function loadTiny(): Promise<NativeEmbedder> {
  return NativeEmbedder.load(await tinyOptions());
}

/** Text sequences of 512 tokens; a hundred keep two cores busy for a good part of a second. */
export function textItems(count: number): NativeEmbedItem[] {
  return Array.from({ length: count }, (_, i) => ({
    ids: Int32Array.from({ length: 512 }, (_, j) => 400 + ((i + j) % 1000)),
    images: [],
  }));
}

export interface ChildEnd {
  code: number | null;
  signal: string | null;
  stdout: string;
  stderr: string;
}

/** Runs a script of test/support to its end. */
export function runChild(script: string, ...args: string[]): Promise<ChildEnd> {
  return new Promise((resolve) => {
    const path = fileURLToPath(new URL(script, import.meta.url));
    const child = execFile(
      process.execPath,
      ['--import', 'tsx', path, ...args],
      { cwd: packageRoot },
      (_error, stdout, stderr) => {
        resolve({ code: child.exitCode, signal: child.signalCode, stdout, stderr });
      },
    );
  });
}

/** The code of a failure, or what came instead of one. */
export async function codeOf(run: () => unknown): Promise<string> {
  try {
    await run();
  } catch (error) {
    return (error as { code?: string }).code ?? String(error);
  }
  return 'no error';
}
