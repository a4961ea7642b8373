/** The fuzz targets under AddressSanitizer and UndefinedBehaviorSanitizer, 100,000 inputs each, in a build of their own. */
import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect } from 'chai';

const run = promisify(execFile);
const root = fileURLToPath(new URL('../../', import.meta.url));
const folder = join(root, 'build-cmake/sanitize');

describe('hostile files and images', () => {
  it('end in an error or are taken, 100,000 of each kind, without a finding', async function () {
    this.timeout(2 * 60 * 60_000);
    const { path } = JSON.parse(await readFile(join(root, '.setup/libtorch.json'), 'utf8')) as {
      path: string;
    };
    const options = [
      `-DBOQ_LIBTORCH=${path}`,
      '-DBOQ_SANITIZE=ON',
      '-DBOQ_BUILD_TESTS=ON',
      '-DBOQ_BUILD_ADDON=OFF',
    ];
    await run('cmake', ['-S', root, '-B', folder, ...options]);
    await run('cmake', ['--build', folder, '--target', 'boq_fuzz', '--parallel', '2'], {
      maxBuffer: 2 ** 26,
    });
    const { stdout } = await run(join(folder, 'native/test/boq_fuzz'), ['100000'], { maxBuffer: 2 ** 26 });
    const tallies = stdout.trim().split('\n');
    expect(tallies).to.have.length(5);
    for (const tally of tallies) {
      const [, taken, refused] = /: (\d+) taken, (\d+) refused, 0 finding/.exec(tally) ?? [];
      expect(Number(taken) + Number(refused), tally).to.equal(100_000);
    }
  });
});
