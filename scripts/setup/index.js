/**
 * The set-up: a list of steps, each with `name`, `needs` (prerequisites), `isComplete(context)` (cheap: file times
 * only) and `run(context)`. A step writes to temporary places, renames, and writes its record last; so the set-up may
 * be killed anywhere and goes on from the step it was in.
 */
import { SetupError } from './error.js';
import { acquireLock } from './lock.js';
import { requirePrerequisites } from './prerequisites.js';
import { browser } from './step-browser.js';
import { libtorch } from './step-libtorch.js';
import { miniwob } from './step-miniwob.js';
import { native } from './step-native.js';
import { packages } from './step-packages.js';
import { tinyCheckpoint } from './step-tiny-checkpoint.js';
import { typescript } from './step-typescript.js';

export const steps = [packages, typescript, libtorch, native, browser, miniwob, tinyCheckpoint];

export function pendingSteps(context, all = steps) {
  return all.filter((step) => !step.isComplete(context));
}

/** @param {import('./context.js').Context} context */
export async function setUp(context, all = steps) {
  requirePrerequisites(context, ['node']);
  const lock = await acquireLock(context);
  context.lockFd = lock.fd;
  try {
    const pending = pendingSteps(context, all);
    requirePrerequisites(
      context,
      pending.flatMap((step) => step.needs),
    );
    for (const step of all) {
      if (step.isComplete(context)) continue;
      context.log(step.title);
      await step.run(context);
      if (!step.isComplete(context)) {
        throw new SetupError(
          `set-up step '${step.name}' ran, but its result is missing or changed meanwhile; run set-up again.`,
        );
      }
    }
    if (pending.length > 0) context.log('set-up complete');
  } catch (error) {
    if (error?.code === 'ENOSPC')
      throw new SetupError(
        `No space is left on the disk (${error.path ?? context.root}): free some and run set-up again.`,
      );
    if (error?.code === 'EACCES' || error?.code === 'EROFS')
      throw new SetupError(`Cannot write ${error.path}: make ${context.root} writable and run set-up again.`);
    throw error;
  } finally {
    context.lockFd = undefined;
    lock.release();
  }
}
