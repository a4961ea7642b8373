import {
  copyFileSync,
  existsSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { availableParallelism, freemem } from 'node:os';
import { join } from 'node:path';
import { runCommand } from './command.js';
import { readRecord, removeRecord, signature, writeRecord } from './record.js';

const inputs = [
  'CMakeLists.txt',
  'native/core',
  'native/vlm',
  'native/iql',
  'native/bindings',
  'third_party/nlohmann',
  'package-lock.json',
];

const builtFile = (context) => join(context.root, 'build/Release/boq_native.node');

function inputSignature(context) {
  return signature(context.root, inputs, readRecord(context, 'libtorch')?.path);
}

/** Compiling a file against ATen takes up to 1.5 GB. */
export function parallelJobs() {
  return Math.max(1, Math.min(availableParallelism(), Math.floor(freemem() / 1.5e9)));
}

/**
 * Removes a build folder that cannot be continued: Make takes half-written objects of a killed build for finished
 * (Ninja does not).
 */
export function clearBrokenBuild(folder) {
  const cache = join(folder, 'CMakeCache.txt');
  const killed = existsSync(join(folder, 'building'));
  if (killed && existsSync(cache) && !/CMAKE_GENERATOR:INTERNAL=Ninja/.test(readFileSync(cache, 'utf8'))) {
    rmSync(folder, { recursive: true });
  }
}

export const native = {
  name: 'native',
  title: 'the C++ addon (some minutes the first time)',
  needs: ['compiler', 'cmake'],
  isComplete(context) {
    const record = readRecord(context, 'native');
    const stat = statSync(builtFile(context), { throwIfNoEntry: false });
    return stat !== undefined && record?.size === stat.size && record.signature === inputSignature(context);
  },
  async run(context) {
    const before = inputSignature(context);
    removeRecord(context, 'native');
    const { path, variant } = readRecord(context, 'libtorch');
    const folder = join(context.root, 'build-cmake', variant);
    clearBrokenBuild(folder);
    mkdirSync(folder, { recursive: true });
    writeFileSync(join(folder, 'building'), '');
    const args = ['node_modules/cmake-js/bin/cmake-js', 'build', '-O', folder, '-T', 'boq_native'];
    args.push('-p', String(parallelJobs()), `--CDBOQ_LIBTORCH=${path}`, '--CDBOQ_BUILD_TESTS=ON');
    await runCommand(context, 'native', process.execPath, args);
    const target = builtFile(context);
    mkdirSync(join(context.root, 'build/Release'), { recursive: true });
    // The temporary name must not end in .node: node-gyp-build loads the first such file of the folder.
    copyFileSync(join(folder, 'Release/boq_native.node'), `${target}.tmp`);
    renameSync(`${target}.tmp`, target);
    rmSync(join(folder, 'building'));
    writeRecord(context, 'native', { signature: before, size: statSync(target).size, variant });
  },
};
