/** Runs sub-commands of a step: output goes to `.setup/logs/<step>.log`, its last lines are shown when one fails. */
import { spawn, spawnSync } from 'node:child_process';
import { closeSync, mkdirSync, openSync, readFileSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { SetupError } from './error.js';

function lastLines(path, count) {
  return readFileSync(path, 'utf8')
    .split(/[\r\n]+/)
    .filter(Boolean)
    .slice(-count);
}

/**
 * @param {import('./context.js').Context} context
 * @param {string} step name of the log
 * @param {string} command
 * @param {string[]} args
 * @param {{cwd?: string, env?: NodeJS.ProcessEnv, holdLock?: boolean, advice?: string}} options
 *   holdLock false for a command that may leave a service running; advice: a sentence for the failure
 */
export async function runCommand(context, step, command, args, options = {}) {
  const folder = join(context.state, 'logs');
  mkdirSync(folder, { recursive: true });
  const path = join(folder, `${step}.log`);
  const log = openSync(path, 'a');
  writeSync(log, `\n$ ${[command, ...args].join(' ')}\n`);
  const lock = options.holdLock === false || context.lockFd === undefined ? [] : [context.lockFd];
  const child = spawn(command, args, {
    cwd: options.cwd ?? context.root,
    env: { ...context.env, ...options.env },
    stdio: ['ignore', log, log, ...lock],
  });
  closeSync(log);
  const ticker = setInterval(() => {
    context.log(`  ${step}: ${lastLines(path, 1)[0]?.slice(0, 100) ?? 'at work'}`);
  }, 20_000);
  const interrupted = () => {
    child.kill('SIGTERM');
    process.exit(130);
  };
  process.on('SIGINT', interrupted).on('SIGTERM', interrupted);
  try {
    const failure = await new Promise((resolve) => {
      child.on('error', (error) => resolve(error.message));
      child.on('exit', (code, signal) =>
        resolve(code === 0 ? undefined : `ended with ${signal ?? `exit code ${code}`}`),
      );
    });
    if (failure === undefined) return;
    const full = lastLines(path, 200).some((line) => /\bENOSPC\b|No space left on device/i.test(line));
    const reason = full
      ? `No space is left on the disk (${context.root}): free some and run set-up again.`
      : options.advice;
    const advice = reason ? `\n${reason}` : '';
    const tail = lastLines(path, 15).map((line) => `    ${line.slice(0, 200)}`);
    throw new SetupError(
      `set-up step '${step}': ${command} ${failure}; log: ${path}\n${tail.join('\n')}${advice}`,
    );
  } finally {
    clearInterval(ticker);
    process.off('SIGINT', interrupted).off('SIGTERM', interrupted);
  }
}

/** Standard output of a short command, or undefined where it is missing or fails. */
export function capture(context, command, args) {
  const result = spawnSync(command, args, { env: context.env, encoding: 'utf8', timeout: 30_000 });
  return result.status === 0 ? result.stdout.trim() : undefined;
}
