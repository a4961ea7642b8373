/** clang-format of exactly one version, since each version formats a little differently. */
import { chmodSync, existsSync, mkdirSync, renameSync, rmSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { capture } from '../setup/command.js';
import { fetchWheel, unpackWheel } from '../setup/wheels.js';

const version = '14.0.6';
const wheel = {
  requirement: `clang-format==${version}`,
  file: `clang_format-${version}-py2.py3-none-manylinux_2_12_x86_64.manylinux2010_x86_64.whl`,
  sha256: 'd7c1c5e404c58e55f0170f01b3c5611dce6c119e62b5d1020347e0ad97d5a047',
  target: ['--only-binary=:all:', '--platform=manylinux2010_x86_64', '--python-version=3.11'],
};

/** @returns {Promise<string>} its path: the system's if the version is right, else the one from PyPI */
export async function findClangFormat(context) {
  for (const name of ['clang-format-14', 'clang-format']) {
    if (capture(context, name, ['--version'])?.includes(`version ${version}`)) return name;
  }
  const folder = join(context.root, 'third_party/.tools', `clang-format-${version}`);
  const path = join(folder, 'clang_format/data/bin/clang-format');
  if (existsSync(path)) return path;
  const fresh = `${folder}.tmp`;
  rmSync(fresh, { recursive: true, force: true });
  const file = await fetchWheel(context, 'clang-format', wheel);
  await unpackWheel(context, 'clang-format', file, fresh, 'clang_format/data/bin/');
  chmodSync(join(fresh, 'clang_format/data/bin/clang-format'), 0o755);
  mkdirSync(dirname(folder), { recursive: true });
  renameSync(fresh, folder);
  rmSync(file);
  return path;
}
