/** Questions on the terminal. */
import { createInterface } from 'node:readline';

/**
 * Asks, and waits for a line.
 * @returns what was typed; null where nobody can answer any more (the end of the input)
 * @throws the signal's reason where it fires first
 */
export function ask(question: string, signal: AbortSignal): Promise<string | null> {
  signal.throwIfAborted();
  const terminal = createInterface({ input: process.stdin, output: process.stderr });
  return new Promise<string | null>((resolve, reject) => {
    const leave = (): void => reject(signal.reason);
    signal.addEventListener('abort', leave, { once: true });
    terminal.once('close', () => {
      signal.removeEventListener('abort', leave);
      resolve(null);
    });
    // Without raw mode, Ctrl-C would end here and nowhere else.
    terminal.once('SIGINT', () => process.emit('SIGINT'));
    terminal.question(question, resolve);
  }).finally(() => terminal.close());
}
