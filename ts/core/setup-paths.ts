/** Where set-up has put things. The only place that knows the folders under the package and the records in `.setup`. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** The package's folder: this file is two below it, as source (ts/core) and as built (dist/core). */
export const packageRoot = fileURLToPath(new URL('../..', import.meta.url)).replace(/\/$/, '');

function readRecord(name: string): Record<string, unknown> | undefined {
  try {
    return JSON.parse(readFileSync(join(packageRoot, '.setup', `${name}.json`), 'utf8'));
  } catch {
    return undefined;
  }
}

/** The folder `html` of MiniWoB++. */
export const miniwobFolder = join(packageRoot, 'third_party/miniwob/html');

/** The checkpoint with random weights that set-up makes. */
export const tinyCheckpointFolder = join(packageRoot, 'models/tiny');

/** The browser that set-up found or installed; undefined before set-up. */
export function recordedBrowser(): string | undefined {
  const path = readRecord('browser')?.path;
  return typeof path === 'string' ? path : undefined;
}

export interface LibtorchRecord {
  path: string;
  version: string;
  variant: 'cpu' | 'cuda';
  /** Which rule found it: BOQ_LIBTORCH, a folder, python3, a wheel. */
  source: string;
}

/** The libtorch that the addon was linked to; undefined before set-up. */
export function recordedLibtorch(): LibtorchRecord | undefined {
  const record = readRecord('libtorch');
  return record && typeof record.path === 'string' ? (record as unknown as LibtorchRecord) : undefined;
}
