#!/usr/bin/env node
/** Prints what is there, and what is wrong with it together with the command that mends it. Node built-ins only. */
import { parseArgs } from 'node:util';
import { createContext } from './setup/context.js';
import { inspect } from './setup/inspect.js';

const help = `usage: node scripts/doctor.js [--json]

Exit code 1 if something that everybody needs is missing or broken. Of endpoints only the names of variables are shown.
`;

function printFindings(findings) {
  const marks = { ok: ' ', warning: '!', problem: 'X' };
  for (const { name, value, status, advice } of findings) {
    const text = Array.isArray(value) ? value.join(', ') : String(value ?? 'none');
    process.stdout.write(`${marks[status]} ${name.padEnd(16)}${text}\n`);
    if (advice) process.stdout.write(`${' '.repeat(18)}${advice}\n`);
  }
}

function main() {
  const options = { json: { type: 'boolean' }, help: { type: 'boolean', short: 'h' } };
  let values;
  try {
    values = parseArgs({ options }).values;
  } catch (error) {
    process.stderr.write(`${error.message}\n\n${help}`);
    return 2;
  }
  if (values.help) {
    process.stdout.write(help);
    return 0;
  }
  const findings = inspect(createContext());
  const healthy = findings.every(({ status }) => status !== 'problem');
  if (values.json) process.stdout.write(`${JSON.stringify({ healthy, findings }, null, 2)}\n`);
  else printFindings(findings);
  return healthy ? 0 : 1;
}

// A reader that closes the pipe early (head) is no failure.
process.stdout.on('error', (error) => {
  if (error.code === 'EPIPE') process.exit(0);
  throw error;
});
process.exitCode = main();
