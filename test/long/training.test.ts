/** Training at length: the C++ tests in their long form, and a model read by plain Python as the documentation says. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { Scorer } from '../../ts/native/scorer.js';
import { fakeWidth } from '../support/fake-run.js';
import { embeddedRun, trainedModel } from '../support/trained.js';

const root = join(import.meta.dirname, '../..');

async function run(command: string, args: readonly string[], env: NodeJS.ProcessEnv = {}) {
  const child = spawn(command, args, { env: { ...process.env, ...env }, stdio: ['ignore', 'pipe', 'pipe'] });
  let output = '';
  child.stdout.on('data', (data) => {
    output += data;
  });
  child.stderr.on('data', (data) => {
    output += data;
  });
  const [code] = await once(child, 'close').catch(() => [-1]);
  return { code: code as number, output };
}

describe('training at length', () => {
  it('survives fifty kills and a full disk, and agrees with PyTorch over eight seeds', async () => {
    const builds = await readdir(join(root, 'build-cmake'));
    const program = builds
      .map((name) => join(root, 'build-cmake', name, 'native/test/boq_tests'))
      .find(existsSync);
    const { code, output } = await run(program as string, ['--no-colors', '--test-case=IQL*,boq_train*'], {
      BOQ_LONG_TESTS: '1',
    });
    expect(output).to.match(/test cases:\s*(2\d|[3-9]\d)/);
    expect(code, output).to.equal(0);
  }).timeout(60 * 60_000);
});

describe('a model in Python', () => {
  let folder: string;
  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'boq-python-'));
  });
  after(() => rm(folder, { recursive: true }));

  /** A Python with numpy and safetensors: one that is there, or a fresh one with both. */
  async function python(): Promise<string> {
    const needed = 'import numpy, safetensors.numpy';
    for (const candidate of [process.env.BOQ_PYTHON, 'python3', 'python']) {
      if (candidate && (await run(candidate, ['-c', needed])).code === 0) return candidate;
    }
    const own = join(folder, 'python');
    const made = await run('python3', ['-m', 'venv', own]);
    expect(made.code, made.output).to.equal(0);
    const installed = await run(join(own, 'bin/pip'), ['install', '--quiet', 'numpy', 'safetensors']);
    expect(installed.code, installed.output).to.equal(0);
    return join(own, 'bin/python');
  }

  it('has the values that the package computes', async () => {
    const model = await trainedModel(await embeddedRun(join(folder, 'run')), join(folder, 'model'), {
      steps: 200,
    });
    const rows = (from: number, count: number): number[] =>
      Array.from({ length: count * fakeWidth }, (_, i) => ((from + i * 37) % 101) / 101);
    const state = rows(1, 1);
    const task = rows(2, 1);
    const actions = rows(3, 4);
    const scorer = await Scorer.load({ path: model });
    const { q } = await scorer.score({
      states: Float32Array.from(state),
      tasks: Float32Array.from(task),
      actions: Float32Array.from(actions),
      owner: new Int32Array(4),
    });
    await scorer.dispose();
    const text = await readFile(join(root, 'docs/data-formats.md'), 'utf8');
    const example = text.match(/<!-- scoring in Python -->\n\n```python\n([\s\S]*?)```/)?.[1];
    expect(example?.trim().split('\n')).to.have.length.at.most(8);
    const script = [
      'import json, numpy',
      `rows = {name: numpy.array(values, "float32").reshape(-1, ${fakeWidth}) for name, values in json.loads("""`,
      `${JSON.stringify({ state, task, action: actions })}""").items()}`,
      example?.replace('models/mine/', `${model}/`),
      'print(json.dumps(q.tolist()))',
    ].join('\n');
    await writeFile(join(folder, 'score.py'), script);
    const { code, output } = await run(await python(), [join(folder, 'score.py')]);
    expect(code, output).to.equal(0);
    const values = JSON.parse(output) as number[];
    expect(values).to.have.length(4);
    for (const [i, value] of values.entries()) expect(value).to.be.closeTo(q[i] as number, 1e-5);
  });
});
