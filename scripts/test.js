#!/usr/bin/env node
/** Every test, from a bare clone: set-up, formatting, types, C++ and mocha suites; the last line is the result. */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { ensureSetup } from './lib/ensure-setup.js';
import { createContext } from './setup/context.js';
import { writeAtomically } from './setup/record.js';
import { groups, longGroups } from './testing/groups.js';

const help = `usage: npm test -- [--group NAME]... [--grep TEXT] [--long] [--record]

  --group NAME  only this group (${Object.keys({ ...groups, ...longGroups }).join(', ')}); may be repeated
  --grep TEXT   only tests whose name contains TEXT
  --long        the long forms as well
  --record      raise the recorded minimum of each group that passed (test/minimums.json)
`;

function readArguments() {
  const { values } = parseArgs({
    options: {
      group: { type: 'string', multiple: true },
      grep: { type: 'string' },
      long: { type: 'boolean' },
      record: { type: 'boolean' },
      help: { type: 'boolean', short: 'h' },
    },
  });
  for (const name of values.group ?? []) {
    if (!(name in groups) && !(name in longGroups)) throw new TypeError(`no group '${name}'`);
  }
  return values;
}

/** A group that ran fewer tests than it once did has lost some, however green it looks. */
function applyMinimum(counts, minimum) {
  const ran = counts.passed + counts.failed;
  if (ran >= minimum) return counts;
  return {
    ...counts,
    failed: counts.failed + 1,
    note: `${ran} tests ran, at least ${minimum} were expected`,
  };
}

function printTable(rows) {
  process.stdout.write('\n');
  for (const { name, passed, failed, seconds, note } of rows) {
    const numbers = `${String(passed).padStart(5)} passed ${String(failed).padStart(4)} failed ${seconds.toFixed(1).padStart(7)} s`;
    process.stdout.write(`${name.padEnd(12)}${numbers}${note ? `  (${note})` : ''}\n`);
  }
}

async function runGroup(context, name, options, minimums) {
  process.stdout.write(`\n== ${name}\n`);
  const start = performance.now();
  const counts = await { ...groups, ...longGroups }[name](context, options);
  const checked = options.grep ? counts : applyMinimum(counts, minimums[name] ?? 0);
  return { name, ...checked, seconds: (performance.now() - start) / 1000 };
}

function recordMinimums(path, minimums, rows) {
  for (const { name, passed, failed } of rows) {
    if (failed === 0) minimums[name] = Math.max(minimums[name] ?? 0, passed);
  }
  writeAtomically(path, `${JSON.stringify(minimums, null, 2)}\n`);
}

async function main() {
  let options;
  try {
    options = readArguments();
  } catch (error) {
    process.stderr.write(`${error.message}\n\n${help}`);
    return 2;
  }
  if (options.help) {
    process.stdout.write(help);
    return 0;
  }
  const rows = [];
  const context = createContext();
  if (await ensureSetup()) {
    const path = join(context.root, 'test/minimums.json');
    const minimums = existsSync(path) ? JSON.parse(readFileSync(path, 'utf8')) : {};
    const names = options.group ?? [...Object.keys(groups), ...(options.long ? Object.keys(longGroups) : [])];
    for (const name of names) rows.push(await runGroup(context, name, options, minimums));
    if (options.record) recordMinimums(path, minimums, rows);
  } else {
    rows.push({ name: 'setup', passed: 0, failed: 1, seconds: 0, note: 'see above' });
  }
  printTable(rows);
  const sum = (key) => rows.reduce((total, row) => total + row[key], 0);
  process.stdout.write(`${sum('passed')} passed, ${sum('failed')} failed\n`);
  return sum('failed') === 0 && sum('passed') > 0 ? 0 : 1;
}

process.exitCode = await main();
