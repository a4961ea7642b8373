/** Finds build/Release/boq_native.node, checks that it belongs to this version, and loads it once. */
import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { isMainThread } from 'node:worker_threads';
import { BoqError } from '../core/errors.js';
import type { Addon, NativeBuildInfo } from './surface.js';

/** Two folders up, from ts/native and from dist/native alike. */
const packageRoot = join(dirname(fileURLToPath(import.meta.url)), '..', '..');
const require = createRequire(import.meta.url);
const remedy = 'Build it with `node scripts/setup.js`';

let loaded: Addon | undefined;

/**
 * OpenMP reads these once, when libtorch is loaded. By default its idle threads spin, which takes the cores away
 * from the browser beside them. A worker's `process.env` is a copy that C code never sees: where workers use the
 * addon, load it in the main thread first or set the variables for the whole process.
 */
function makeOpenMpWaitPassively(): void {
  process.env.OMP_WAIT_POLICY ??= 'PASSIVE';
  process.env.GOMP_SPINCOUNT ??= '0';
  process.env.KMP_BLOCKTIME ??= '0';
}

/**
 * oneDNN compiles a kernel for each shape that it meets and keeps a thousand of each kind: with texts of every length,
 * gigabytes. Those of the last few shapes are what repeats.
 */
function keepFewKernels(): void {
  process.env.LRU_CACHE_CAPACITY ??= '64';
  process.env.ONEDNN_PRIMITIVE_CACHE_CAPACITY ??= '64';
}

function loadBinary(root: string): Addon {
  if (!existsSync(join(root, 'build', 'Release', 'boq_native.node'))) {
    throw new BoqError(
      'BOQ_NATIVE_NOT_FOUND',
      `the native addon is not built: ${join(root, 'build', 'Release', 'boq_native.node')} does not exist. ${remedy}`,
    );
  }
  try {
    const find = require('node-gyp-build') as (root: string) => Addon;
    return find(root);
  } catch (cause) {
    throw new BoqError(
      'BOQ_NATIVE_NOT_FOUND',
      `the native addon cannot be loaded: ${(cause as Error).message}. If libtorch was moved or removed, build again with \`node scripts/setup.js\``,
      { cause },
    );
  }
}

/** @internal For tests: the addon of the package at `root`, loaded and checked anew. */
export function loadAddonFrom(root: string): Addon {
  makeOpenMpWaitPassively();
  keepFewKernels();
  const addon = loadBinary(root);
  const { version } = require(join(root, 'package.json')) as { version: string };
  const built = addon.buildInfo().version;
  if (built !== version) {
    throw new BoqError(
      'BOQ_NATIVE_MISMATCH',
      `the native addon was built for version ${built} of this package, which is now ${version}. ${remedy}`,
      { details: { built, version } },
    );
  }
  return addon;
}

/**
 * The addon of this package.
 *
 * @throws BoqError BOQ_NATIVE_NOT_FOUND, BOQ_NATIVE_MISMATCH
 */
export function loadAddon(): Addon {
  if (loaded === undefined) {
    const addon = loadAddonFrom(packageRoot);
    // Before static objects of libtorch go away, under which a running job would crash. Workers need none of
    // this: their jobs are cancelled when their environment ends.
    if (isMainThread) process.once('exit', () => addon.halt());
    loaded = addon;
  }
  return loaded;
}

/**
 * What the addon is and what it runs on.
 *
 * @throws BoqError BOQ_NATIVE_NOT_FOUND, BOQ_NATIVE_MISMATCH
 */
export function buildInfo(): NativeBuildInfo {
  return loadAddon().buildInfo();
}
