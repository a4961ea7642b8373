import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { readRecord } from './record.js';

/**
 * @typedef {object} Context
 * @property {string} root the package's folder
 * @property {string} state `.setup`: records, logs
 * @property {NodeJS.ProcessEnv} env
 * @property {'cpu' | 'cuda' | undefined} variant what the user asked for, if anything
 * @property {(line: string) => void} log
 * @property {number | undefined} lockFd inherited by sub-processes, so that the lock outlives a killed parent
 */

const started = process.hrtime.bigint();

function logLine(line) {
  const seconds = Number(process.hrtime.bigint() - started) / 1e9;
  process.stderr.write(`[${seconds.toFixed(1).padStart(6)} s] ${line}\n`);
}

/** @returns {Context} */
export function createContext(options = {}) {
  const root = options.root ?? fileURLToPath(new URL('../..', import.meta.url)).replace(/\/$/, '');
  const env = options.env ?? process.env;
  const state = join(root, '.setup');
  const variant =
    options.variant ?? (env.BOQ_VARIANT || undefined) ?? readRecord({ state }, 'variant')?.variant;
  return { root, state, env, variant, log: options.log ?? logLine, lockFd: undefined };
}
