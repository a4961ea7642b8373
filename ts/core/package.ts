/** What this package says about itself. */
import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { promisify } from 'node:util';
import { packageRoot } from './setup-paths.js';

export async function packageVersion(): Promise<string> {
  const text = await readFile(new URL('../../package.json', import.meta.url), 'utf8');
  return (JSON.parse(text) as { version: string }).version;
}

/** The commit that the package's folder is at; null where it is no git checkout of its own. */
export async function gitCommit(): Promise<string | null> {
  try {
    const git = promisify(execFile);
    const { stdout } = await git('git', ['-C', packageRoot, 'rev-parse', '--show-prefix', 'HEAD']);
    // A first line that is not empty: the package lies inside somebody else's repository.
    const [prefix, commit] = stdout.split('\n');
    return prefix === '' && commit ? commit : null;
  } catch {
    return null;
  }
}
