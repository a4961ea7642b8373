/**
 * What all commands share: options, exit codes, Ctrl-C, errors in one form. Data goes to stdout, everything else to
 * stderr. Exit codes: 0 done, 1 failed, 2 wrong usage, 130 interrupted.
 */
import { Command, CommanderError, InvalidArgumentError } from 'commander';
import { BoqError, type BoqErrorCode, isBoqError } from '../core/errors.js';

export const exitCodes = { done: 0, failed: 1, usage: 2, interrupted: 130 } as const;

/** What a command's action gets besides its options. */
export interface CommandContext {
  /** Aborts on the first Ctrl-C; stages then stop at the next safe point, and the same command resumes. */
  signal: AbortSignal;
  /** One line of data on stdout. */
  print(line: string): void;
  /** One line for people on stderr. */
  say(line: string): void;
  /** Exit code 1 for a command that did part of its work and has said what is missing. */
  fail(): void;
}

const usageCodes: readonly BoqErrorCode[] = [
  'BOQ_USAGE',
  'BOQ_CONFIG_INVALID',
  'BOQ_TASK_UNKNOWN',
  'BOQ_VLM_ENDPOINT',
];

/**
 * Runs one command line.
 * @param define adds arguments, options and the action to the command
 * @returns the exit code; errors have been told on stderr
 */
export async function runCommand(
  name: string,
  description: string,
  define: (command: Command, context: CommandContext) => void,
  argv: readonly string[],
): Promise<number> {
  const abort = new AbortController();
  const interrupt = (): void => {
    if (abort.signal.aborted) process.exit(exitCodes.interrupted);
    process.stderr.write('\nStopping at the next safe point. Ctrl-C again stops at once.\n');
    abort.abort(new BoqError('BOQ_ABORTED', `${name} was interrupted. Run the same command again to go on.`));
  };
  process.on('SIGINT', interrupt);
  process.on('SIGTERM', interrupt);
  // A reader that closes the pipe early (head) is no failure.
  process.stdout.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code === 'EPIPE') process.exit(exitCodes.done);
    throw error;
  });
  let failed = false;
  const context: CommandContext = {
    signal: abort.signal,
    print: (line) => void process.stdout.write(`${line}\n`),
    say: (line) => void process.stderr.write(`${line}\n`),
    fail: () => {
      failed = true;
    },
  };
  const command = new Command(name)
    .description(description)
    .showHelpAfterError('(--help shows all options)')
    .allowExcessArguments(false)
    .exitOverride();
  try {
    define(command, context);
    await command.parseAsync([...argv], { from: 'user' });
    return failed ? exitCodes.failed : exitCodes.done;
  } catch (error) {
    // Commander has printed its own message already.
    if (!(error instanceof CommanderError)) context.say(describeError(error));
    return abort.signal.aborted ? exitCodes.interrupted : exitCodeOf(error);
  } finally {
    process.off('SIGINT', interrupt);
    process.off('SIGTERM', interrupt);
  }
}

/** Exit code for an error that ended a command. */
export function exitCodeOf(error: unknown): number {
  if (error instanceof CommanderError) return error.exitCode === 0 ? exitCodes.done : exitCodes.usage;
  if (!isBoqError(error)) return exitCodes.failed;
  if (error.code === 'BOQ_ABORTED') return exitCodes.interrupted;
  return usageCodes.includes(error.code) ? exitCodes.usage : exitCodes.failed;
}

/** One line for our own errors; for any other, which is a defect, its stack as well. BOQ_DEBUG shows all stacks. */
export function describeError(error: unknown): string {
  if (isBoqError(error)) {
    const line = `${error.code}: ${error.message}`;
    return process.env['BOQ_DEBUG'] ? `${line}\n${error.stack}` : line;
  }
  return error instanceof Error ? (error.stack ?? error.message) : String(error);
}

/** Option parser: an integer of at least `least`. */
export function integerOption(least: number): (text: string) => number {
  return (text) => {
    const value = Number(text);
    if (!/^-?\d+$/.test(text) || !Number.isSafeInteger(value) || value < least) {
      throw new InvalidArgumentError(`Expected an integer of at least ${least}.`);
    }
    return value;
  };
}

/** Option parser: a number between two bounds, both allowed. */
export function numberOption(low: number, high: number): (text: string) => number {
  return (text) => {
    const value = Number(text);
    if (text.trim() === '' || !(value >= low && value <= high)) {
      throw new InvalidArgumentError(`Expected a number from ${low} to ${high}.`);
    }
    return value;
  };
}

/** Option parser: `A-B` or a single `A`, both ends included. */
export function rangeOption(text: string): { from: number; to: number } {
  const match = /^(\d+)(?:-(\d+))?$/.exec(text.trim());
  const from = Number(match?.[1]);
  const to = Number(match?.[2] ?? match?.[1]);
  if (!match || !Number.isSafeInteger(to) || to < from) {
    throw new InvalidArgumentError('Expected a range such as 0-29, or one number.');
  }
  return { from, to };
}

/** Option parser: comma-separated words, spaces ignored. */
export function listOption(text: string): string[] {
  const words = text
    .split(',')
    .map((word) => word.trim())
    .filter(Boolean);
  if (words.length === 0) throw new InvalidArgumentError('Expected a comma-separated list.');
  return words;
}

/** Option parser of a variadic option: comma-separated words, those of a pattern that the shell spread out, or both. */
export function listsOption(text: string, before: readonly string[] = []): string[] {
  return [...before, ...listOption(text)];
}
