/** What every thin script does: complete the set-up if something is missing, then run the command of that name. */
import { ensureSetup } from './ensure-setup.js';

/** @param {string} name a module of dist/cli that exports `main(argv): Promise<number>` (the exit code) */
export async function run(name) {
  if (!(await ensureSetup())) {
    process.exitCode = 1;
    return;
  }
  const { main } = await import(new URL(`../../dist/cli/${name}.js`, import.meta.url).href);
  process.exitCode = await main(process.argv.slice(2));
}
