/** Wheels through pip, which knows the user's indexes and wheel folders: download, check, unpack a part. */
import { createHash } from 'node:crypto';
import { createReadStream, existsSync, mkdirSync, readdirSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { fileURLToPath } from 'node:url';
import { runCommand } from './command.js';
import { SetupError } from './error.js';

const unpackScript = fileURLToPath(new URL('./unpack.py', import.meta.url));

async function sha256(path) {
  const hash = createHash('sha256');
  await pipeline(createReadStream(path), hash);
  return hash.digest('hex');
}

/**
 * @typedef {object} Wheel a row of third_party/libtorch.json or a constant of a step
 * @property {string} requirement for pip, exact: `name==version`
 * @property {string} file the wheel's name
 * @property {string} sha256
 * @property {string} [index] where it is published, if not on the default index: tried second
 * @property {string[]} [target] pip's options that choose the file, whatever Python runs pip
 */

/**
 * Downloads one wheel to third_party/.downloads, or takes it from there; its hash must be the table's.
 * @param {Wheel} wheel
 * @returns {Promise<string>} its path
 */
export async function fetchWheel(context, step, wheel) {
  const folder = join(context.root, 'third_party/.downloads');
  const path = join(folder, wheel.file);
  if (existsSync(path)) {
    if ((await sha256(path)) === wheel.sha256) return path;
    rmSync(path);
  }
  // A fresh folder: what a killed download left in it is never looked at again.
  const temporary = join(folder, `${step}.tmp`);
  const download = async (extra, advice) => {
    rmSync(temporary, { recursive: true, force: true });
    mkdirSync(temporary, { recursive: true });
    const options = ['--no-deps', '--no-input', '--disable-pip-version-check', '--dest', temporary];
    const args = ['-m', 'pip', 'download', ...options, ...(wheel.target ?? []), ...extra, wheel.requirement];
    await runCommand(context, step, 'python3', args, { advice });
  };
  context.log(`  ${step}: fetching ${wheel.requirement}`);
  const advice = `pip could not fetch ${wheel.requirement}: check the network (or pip's index settings) and run \`node scripts/setup.js\` again.`;
  try {
    await download([], advice);
  } catch (error) {
    if (!wheel.index || !(error instanceof SetupError)) throw error;
    context.log(`  ${step}: not on the default index, trying ${wheel.index}`);
    await download(['--index-url', wheel.index], advice);
  }
  const [name] = readdirSync(temporary);
  const got = await sha256(join(temporary, name));
  if (got !== wheel.sha256) {
    rmSync(temporary, { recursive: true, force: true });
    throw new SetupError(
      `set-up step '${step}': expected ${wheel.file} with sha256 ${wheel.sha256}, pip brought ${name} with ${got}; ` +
        'check where pip takes its packages from (`pip config list`).',
    );
  }
  renameSync(join(temporary, name), path);
  rmSync(temporary, { recursive: true, force: true });
  return path;
}

/** Unpacks the members that match `pattern` (a regular expression of Python) into `folder`. */
export async function unpackWheel(context, step, path, folder, pattern) {
  await runCommand(context, step, 'python3', [unpackScript, path, folder, pattern], {
    advice: `unpacking ${path} failed: is the disk full?`,
  });
}
