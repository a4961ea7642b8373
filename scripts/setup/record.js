/** Records of finished steps: `.setup/<name>.json`, written last and atomically, so a record means the step is done. */
import { createHash } from 'node:crypto';
import { mkdirSync, readdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

/** @returns {Record<string, any> | undefined} undefined where there is none, or none that can be read */
export function readRecord(context, name) {
  try {
    return JSON.parse(readFileSync(join(context.state, `${name}.json`), 'utf8'));
  } catch {
    return undefined;
  }
}

export function writeRecord(context, name, value) {
  writeAtomically(join(context.state, `${name}.json`), `${JSON.stringify(value, null, 2)}\n`);
}

export function removeRecord(context, name) {
  rmSync(join(context.state, `${name}.json`), { force: true });
}

export function writeAtomically(path, content) {
  mkdirSync(dirname(path), { recursive: true });
  const temporary = `${path}.${process.pid}.tmp`;
  writeFileSync(temporary, content);
  renameSync(temporary, path);
}

/** Hash of path, size and time of files and of all files below folders: changes with every edit, new or lost file. */
export function signature(root, entries, extra = '') {
  const hash = createHash('sha256').update(extra);
  const visit = (path) => {
    const stat = statSync(join(root, path), { throwIfNoEntry: false });
    if (stat?.isDirectory()) {
      for (const name of readdirSync(join(root, path)).sort()) visit(`${path}/${name}`);
    } else {
      hash.update(stat ? `${path}\0${stat.size}\0${stat.mtimeMs}\n` : `${path}\0none\n`);
    }
  };
  for (const entry of entries) visit(entry);
  return hash.digest('hex');
}
