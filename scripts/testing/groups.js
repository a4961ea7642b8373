/** The groups of tests. Each runs in a process of its own and answers with counts, whatever happens to that process. */
import { spawn } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { SetupError } from '../setup/error.js';
import { readRecord } from '../setup/record.js';
import { parallelJobs } from '../setup/step-native.js';
import { findClangFormat } from './clang-format.js';

/** @typedef {{passed: number, failed: number, note?: string}} Counts */

/** Runs a command with our own output; resolves with undefined, or with how it ended. */
function execute(context, command, args, options = {}) {
  const stdio = ['ignore', options.onOutput ? 'pipe' : 'inherit', 'inherit'];
  const child = spawn(command, args, { cwd: context.root, env: { ...context.env, ...options.env }, stdio });
  child.stdout?.on('data', (chunk) => {
    process.stdout.write(chunk);
    options.onOutput(chunk.toString());
  });
  const limit = setTimeout(() => child.kill('SIGKILL'), (options.minutes ?? 30) * 60_000);
  return new Promise((resolve) => {
    child.on('error', (error) => resolve(error.message));
    child.on('close', (code, signal) => {
      clearTimeout(limit);
      resolve(code === 0 ? undefined : (signal ?? `exit code ${code}`));
    });
  });
}

async function check(context, command, args) {
  const failure = await execute(context, command, args);
  return { passed: failure ? 0 : 1, failed: failure ? 1 : 0, note: failure };
}

function filesBelow(root, folder, pattern) {
  if (!existsSync(join(root, folder))) return [];
  return readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
    .filter((name) => pattern.test(name))
    .map((name) => join(folder, name))
    .sort();
}

const formatTypescript = (context) =>
  check(context, process.execPath, [
    'node_modules/@biomejs/biome/bin/biome',
    'check',
    '--error-on-warnings',
    '.',
  ]);

async function formatCpp(context) {
  try {
    const files = filesBelow(context.root, 'native', /\.(cpp|h)$/);
    return await check(context, await findClangFormat(context), ['--dry-run', '--Werror', ...files]);
  } catch (error) {
    if (!(error instanceof SetupError)) throw error;
    process.stdout.write(`${error.message}\n`);
    return { passed: 0, failed: 1, note: 'no clang-format' };
  }
}

const types = (context) =>
  check(context, process.execPath, ['node_modules/typescript/bin/tsc', '-p', 'tsconfig.json']);

/** doctest's last lines, e.g. `[doctest] test cases: 31 | 30 passed | 1 failed | 0 skipped`. */
export function parseDoctest(output) {
  const match = output.match(/test cases:\s*\d+\s*\|\s*(\d+) passed\s*\|\s*(\d+) failed/);
  return match ? { passed: Number(match[1]), failed: Number(match[2]) } : undefined;
}

async function cpp(context, options) {
  // The same build folder as the addon's: the core library is compiled once for both.
  const folder = join('build-cmake', readRecord(context, 'libtorch').variant);
  const build = [
    '--build',
    folder,
    '--target',
    'boq_tests',
    'boq_train',
    '--parallel',
    String(parallelJobs()),
  ];
  const broken = await execute(context, 'cmake', build);
  if (broken) return { passed: 0, failed: 1, note: `does not build: ${broken}` };
  let output = '';
  const onOutput = (text) => {
    output += text;
  };
  const filter = options.grep ? [`--test-case=*${options.grep}*`] : [];
  const ended = await execute(context, join(folder, 'native/test/boq_tests'), ['--no-colors', ...filter], {
    onOutput,
  });
  const counts = parseDoctest(output);
  if (!counts) return { passed: 0, failed: 1, note: `crashed: ${ended ?? 'no summary'}` };
  return ended && counts.failed === 0 ? { ...counts, failed: 1, note: ended } : counts;
}

/** Counts from the reporter's record; a record without its end, or an unexplained exit, is one failure more. */
export function countRecord(text, ended) {
  const lines = text.split('\n');
  const passed = lines.filter((line) => line.startsWith('pass ')).length;
  const failed = lines.filter((line) => line.startsWith('fail ')).length;
  if (!lines.includes('end')) return { passed, failed: failed + 1, note: `crashed: ${ended ?? 'no end'}` };
  if (ended && failed === 0) return { passed, failed: 1, note: ended };
  return { passed, failed };
}

function mocha(name) {
  return async (context, options) => {
    const files = filesBelow(context.root, `test/${name}`, /\.test\.(tsx?|js)$/);
    if (files.length === 0) return { passed: 0, failed: 0, note: 'no test files' };
    const record = join(context.state, `tests-${name}.txt`);
    mkdirSync(context.state, { recursive: true });
    rmSync(record, { force: true });
    const args = ['--import', 'tsx', 'node_modules/mocha/bin/_mocha'];
    args.push('--forbid-only', '--forbid-pending');
    args.push('--reporter', join(context.root, 'scripts/testing/mocha-reporter.cjs'));
    if (options.grep) args.push('--grep', options.grep);
    const ended = await execute(context, process.execPath, [...args, ...files], {
      env: { BOQ_TEST_RECORD: record },
      minutes: name.startsWith('long') ? 240 : 30,
    });
    return countRecord(existsSync(record) ? readFileSync(record, 'utf8') : '', ended);
  };
}

/** In the order in which they run: the quick ones first. */
export const groups = {
  format: formatTypescript,
  'format-cpp': formatCpp,
  types,
  cpp,
  unit: mocha('unit'),
  binding: mocha('binding'),
  integration: mocha('integration'),
};

export const longGroups = { long: mocha('long') };
