import { createContext } from '../setup/context.js';
import { SetupError } from '../setup/error.js';
import { pendingSteps, setUp } from '../setup/index.js';

/**
 * Completes the set-up where something is missing or older than its sources; otherwise only looks at file times.
 * @returns {Promise<boolean>} false after a failure, which has been explained on stderr
 */
export async function ensureSetup() {
  const context = createContext();
  if (pendingSteps(context).length === 0) return true;
  try {
    await setUp(context);
    return true;
  } catch (error) {
    if (!(error instanceof SetupError)) throw error;
    process.stderr.write(`${error.message}\n`);
    return false;
  }
}
