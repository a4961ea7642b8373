/** The CUDA variant, set up from a fresh clone and used on the CPU: that needs no GPU, no driver and no nvcc. */
import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { cp, mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect } from 'chai';

const run = promisify(execFile);
const root = fileURLToPath(new URL('../../', import.meta.url));

interface Finding {
  name: string;
  value: string | null;
  status: string;
  advice?: string;
}

describe('the CUDA variant', () => {
  let folder: string;

  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'boq-cuda-'));
  });
  after(() => rm(folder, { recursive: true }));

  it('is compiled, linked and loaded, says what it lacks, and works on the CPU', async function () {
    this.timeout(2 * 60 * 60_000);
    const clone = join(folder, 'clone');
    const work = (command: string, args: readonly string[]) =>
      run(command, args, { cwd: clone, maxBuffer: 2 ** 26 });
    await run('git', ['clone', '--quiet', root, clone]);
    const fetched = join(root, 'third_party/.downloads');
    await mkdir(join(clone, 'third_party'), { recursive: true });
    if (existsSync(fetched)) await cp(fetched, join(clone, 'third_party/.downloads'), { recursive: true });
    await work(process.execPath, ['scripts/setup.js', '--variant', 'cuda']);

    const { stdout } = await work(process.execPath, ['scripts/doctor.js', '--json']);
    const { findings } = JSON.parse(stdout) as { findings: Finding[] };
    const finding = (name: string) => findings.find((one) => one.name === name)!;
    expect(finding('libtorch').value).to.include('(cuda)');
    expect(finding('addon').status).to.equal('ok');
    const cuda = finding('cuda');
    if (cuda.value === null) expect(cuda.advice).to.include('driver');

    await work(process.execPath, [
      ...['scripts/collect.js', '--benchmark', 'miniwob', '--tasks', 'click-button', '--seeds', '0-1'],
      ...['--out', 'runs/few', '--quiet'],
    ]);
    await work(process.execPath, ['scripts/embed.js', 'runs/few', '--device', 'cpu']);
    const asked = await work(process.execPath, ['scripts/embed.js', 'runs/few', '--device', 'cuda:0']).catch(
      (error: { stderr: string }) => error,
    );
    if (cuda.value === null) expect(asked.stderr).to.include('BOQ_CUDA_UNAVAILABLE');
  });
});
