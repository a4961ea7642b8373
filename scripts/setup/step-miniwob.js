import { existsSync, mkdirSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { fetchWheel, unpackWheel } from './wheels.js';

const wheel = {
  requirement: 'miniwob==1.0.1',
  file: 'miniwob-1.0.1-py3-none-any.whl',
  sha256: '3049438567cabe84287fba491128fbe9a30f7f7c7aae67a12b1a4214807eb737',
  target: ['--only-binary=:all:', '--ignore-requires-python'],
};

const folderOf = (context) => join(context.root, 'third_party/miniwob');

/** third_party/miniwob/{html, LICENSE}: renamed into place when all of it is there. */
export const miniwob = {
  name: 'miniwob',
  title: 'MiniWoB++ pages',
  needs: ['pip'],
  isComplete: (context) => existsSync(join(folderOf(context), wheel.sha256.slice(0, 16))),
  async run(context) {
    const folder = folderOf(context);
    const fresh = `${folder}.tmp`;
    rmSync(fresh, { recursive: true, force: true });
    const path = await fetchWheel(context, 'miniwob', wheel);
    await unpackWheel(context, 'miniwob', path, fresh, 'miniwob/html/|miniwob-[^/]*/licenses/LICENSE$');
    renameSync(join(fresh, 'miniwob/html'), join(fresh, 'html'));
    renameSync(join(fresh, 'miniwob-1.0.1.dist-info/licenses/LICENSE'), join(fresh, 'LICENSE'));
    rmSync(join(fresh, 'miniwob'), { recursive: true });
    rmSync(join(fresh, 'miniwob-1.0.1.dist-info'), { recursive: true });
    mkdirSync(join(fresh, wheel.sha256.slice(0, 16)));
    rmSync(folder, { recursive: true, force: true });
    renameSync(fresh, folder);
    rmSync(path);
  },
};
