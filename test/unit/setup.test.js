/** The set-up's own machinery, with small steps in a temporary folder; real processes are killed. */

import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { expect } from 'chai';
import { runCommand } from '../../scripts/setup/command.js';
import { createContext } from '../../scripts/setup/context.js';
import { SetupError } from '../../scripts/setup/error.js';
import { pendingSteps, setUp } from '../../scripts/setup/index.js';
import { prerequisites, requirePrerequisites } from '../../scripts/setup/prerequisites.js';
import { readRecord, signature, writeRecord } from '../../scripts/setup/record.js';
import { inspectLibtorch, libtorch } from '../../scripts/setup/step-libtorch.js';
import { clearBrokenBuild } from '../../scripts/setup/step-native.js';
import { unpackWheel } from '../../scripts/setup/wheels.js';
import { countRecord, parseDoctest } from '../../scripts/testing/groups.js';

const repository = resolve(import.meta.dirname, '../..');

let root;
let lines;
let context;

async function rejection(promise) {
  try {
    await promise;
  } catch (error) {
    return error;
  }
  throw new Error('expected a rejection, the promise was fulfilled');
}

/** A step that writes its record like the real ones; `work` runs in between. */
function step(name, work = () => {}) {
  return {
    name,
    title: name,
    needs: [],
    isComplete: (context) => readRecord(context, name) !== undefined,
    async run(context) {
      await work(context);
      writeRecord(context, name, {});
    },
  };
}

/** A folder for PATH with shell scripts in place of programs. */
function fakePath(programs) {
  const folder = join(root, 'bin');
  mkdirSync(folder, { recursive: true });
  for (const [name, output] of Object.entries(programs)) {
    writeFileSync(join(folder, name), `#!/bin/sh\necho "${output}"\n`);
    chmodSync(join(folder, name), 0o755);
  }
  return folder;
}

beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'boq-setup-test-'));
  lines = [];
  context = createContext({ root, env: { PATH: process.env.PATH }, log: (line) => lines.push(line) });
});

afterEach(() => rmSync(root, { recursive: true, force: true }));

describe('set-up steps', () => {
  it('run in order, once', async () => {
    const ran = [];
    const all = ['one', 'two'].map((name) => step(name, () => ran.push(name)));
    await setUp(context, all);
    await setUp(context, all);
    expect(ran).to.deep.equal(['one', 'two']);
    expect(pendingSteps(context, all)).to.deep.equal([]);
  });

  it('go on after a failure with the step that failed', async () => {
    const ran = [];
    let broken = true;
    const all = [
      step('one', () => ran.push('one')),
      step('two', () => {
        ran.push('two');
        if (broken) throw new SetupError('no network');
      }),
    ];
    expect(await rejection(setUp(context, all))).to.have.property('message', 'no network');
    broken = false;
    await setUp(context, all);
    expect(ran).to.deep.equal(['one', 'two', 'two']);
  });

  it('are failures when they leave nothing behind', async () => {
    const idle = { ...step('idle'), run: async () => {} };
    expect(await rejection(setUp(context, [idle]))).to.match(/'idle' ran, but its result is missing/);
  });

  it('explain a full disk and a folder that cannot be written', async () => {
    const failing = (code) =>
      step(code, () => Promise.reject(Object.assign(new Error(code), { code, path: '/x' })));
    expect(await rejection(setUp(context, [failing('ENOSPC')]))).to.match(
      /No space is left on the disk \(\/x\)/,
    );
    expect(await rejection(setUp(context, [failing('EACCES')]))).to.match(/Cannot write \/x/);
  });

  it('ignore a record that was cut off', () => {
    mkdirSync(context.state);
    writeFileSync(join(context.state, 'one.json'), '{"signature": "ab');
    expect(pendingSteps(context, [step('one')])).to.have.length(1);
  });
});

describe('set-up lock', () => {
  /** A set-up in another process whose only step starts a long sub-process, which says that it runs. */
  function startOther() {
    const code = `
      import { createContext } from '${repository}/scripts/setup/context.js';
      import { runCommand } from '${repository}/scripts/setup/command.js';
      import { setUp } from '${repository}/scripts/setup/index.js';
      const context = createContext({ root: '${root}' });
      const name = 'other';
      await setUp(context, [{ name, title: name, needs: [], isComplete: () => false, run: (context) =>
        runCommand(context, name, process.execPath, ['-e',
          'require("fs").writeFileSync("${root}/started.tmp", String(process.pid)); require("fs").renameSync("${root}/started.tmp", "${root}/started"); setInterval(() => {}, 1000)']) }]);`;
    return spawn(process.execPath, ['--input-type=module', '-e', code], { stdio: 'ignore' });
  }

  async function untilStarted() {
    while (!existsSync(join(root, 'started'))) await new Promise((resolve) => setTimeout(resolve, 20));
    return Number(readFileSync(join(root, 'started'), 'utf8'));
  }

  it('waits for another set-up, and after kill -9 for the process that it left behind', async () => {
    const other = startOther();
    const orphan = await untilStarted();
    const ran = [];
    const waiting = setUp(context, [step('mine', () => ran.push('mine'))]);
    const exited = once(other, 'exit');
    other.kill('SIGKILL');
    await exited;
    // The orphan still writes into the folder: nobody else may.
    await new Promise((resolve) => setImmediate(resolve));
    expect(ran).to.deep.equal([]);
    process.kill(orphan, 'SIGKILL');
    await waiting;
    expect(ran).to.deep.equal(['mine']);
    expect(lines[0]).to.match(/another set-up is at work/);
  });
});

describe('set-up records', () => {
  it('change with edits, new files and lost files', () => {
    mkdirSync(join(root, 'src/deep'), { recursive: true });
    writeFileSync(join(root, 'src/deep/a'), 'a');
    const seen = [signature(root, ['src'])];
    writeFileSync(join(root, 'src/b'), 'b');
    seen.push(signature(root, ['src']));
    utimesSync(join(root, 'src/deep/a'), 1, 1);
    seen.push(signature(root, ['src']));
    rmSync(join(root, 'src/b'));
    seen.push(signature(root, ['src']), signature(root, ['src'], 'other library'));
    expect(new Set(seen).size).to.equal(seen.length);
    expect(signature(root, ['src'])).to.equal(seen[3]);
  });
});

describe('set-up commands', () => {
  it('show the last lines of a failed command, its log and the advice', async () => {
    const args = ['-e', 'for (let i = 0; i < 40; i++) console.log("line " + i); process.exit(3)'];
    const error = await rejection(
      runCommand(context, 'noisy', process.execPath, args, { advice: 'Do this.' }),
    );
    expect(error).to.be.instanceOf(SetupError);
    expect(error.message).to.match(/ended with exit code 3; log: .*noisy\.log/);
    expect(error.message).to.include('line 39').and.not.include('line 24\n');
    expect(error.message).to.match(/Do this\.$/);
  });

  it('name a command that does not exist', async () => {
    expect(await rejection(runCommand(context, 'none', 'no-such-program', []))).to.match(
      /no-such-program .*ENOENT/,
    );
  });
});

describe('prerequisites', () => {
  it('are all listed at once, each with the command that installs it', () => {
    const bare = { ...context, env: { PATH: fakePath({ 'apt-get': 'apt 2.6' }) } };
    const root = process.getuid() === 0 ? '' : 'sudo ';
    expect(() => requirePrerequisites(bare, ['compiler', 'cmake', 'pip', 'cmake', 'node']))
      .to.throw(SetupError)
      .with.property('message')
      .that.satisfies((message) => {
        expect(message.split('\n')).to.have.length(4);
        for (const names of ['g++', 'cmake make', 'python3-pip']) {
          expect(message).to.include(`\`${root}apt-get install -y ${names}\``);
        }
        return true;
      });
  });

  it('name the command of the package manager that is there', () => {
    const bare = { ...context, env: { PATH: fakePath({ dnf: '4.1' }) } };
    expect(prerequisites.compiler.missing(bare)).to.include('dnf install -y gcc-c++');
  });

  it('refuse a CMake that is too old', () => {
    const old = { ...context, env: { PATH: fakePath({ cmake: 'cmake version 3.16.3' }) } };
    expect(prerequisites.cmake.find(old)).to.equal(undefined);
    fakePath({ cmake: 'cmake version 3.22.0' });
    expect(prerequisites.cmake.find(old)).to.equal('3.22.0');
  });

  it('stop a set-up before any step runs', async () => {
    const bare = { ...context, env: { PATH: fakePath({}) } };
    const ran = [];
    const needy = { ...step('needy', () => ran.push('needy')), needs: ['compiler'] };
    expect(await rejection(setUp(bare, [step('first', () => ran.push('first')), needy]))).to.match(
      /C\+\+20 compiler/,
    );
    expect(ran).to.deep.equal([]);
  });
});

describe('libtorch', () => {
  function fakeLibtorch(folder, minor, cuda = false) {
    mkdirSync(join(folder, 'include/torch/headeronly'), { recursive: true });
    mkdirSync(join(folder, 'lib'), { recursive: true });
    const header = `#define TORCH_VERSION_MAJOR 2\n#define TORCH_VERSION_MINOR ${minor}\n#define TORCH_VERSION_PATCH 0\n`;
    writeFileSync(join(folder, 'include/torch/headeronly/version.h'), header);
    writeFileSync(join(folder, 'lib/libtorch_cpu.so'), '');
    if (cuda) writeFileSync(join(folder, 'lib/libtorch_cuda.so'), '');
    return folder;
  }

  it('is known by its version and variant', () => {
    expect(inspectLibtorch(fakeLibtorch(join(root, 'a'), 12))).to.include({
      version: '2.12.0',
      variant: 'cpu',
      supported: true,
    });
    expect(inspectLibtorch(fakeLibtorch(join(root, 'b'), 5, true))).to.include({
      variant: 'cuda',
      supported: false,
    });
    expect(inspectLibtorch(join(root, 'nothing'))).to.equal(undefined);
  });

  it('comes from BOQ_LIBTORCH first, then from third_party', async () => {
    fakeLibtorch(join(root, 'third_party/libtorch/cpu/torch'), 13);
    await libtorch.run({ ...context, variant: 'cpu' });
    expect(readRecord(context, 'libtorch')).to.include({
      version: '2.13.0',
      source: 'third_party/libtorch/cpu',
    });
    const named = { ...context, env: { BOQ_LIBTORCH: fakeLibtorch(join(root, 'own'), 11) } };
    expect(libtorch.isComplete(context)).to.equal(true);
    expect(libtorch.isComplete(named)).to.equal(false);
    await libtorch.run(named);
    expect(readRecord(context, 'libtorch')).to.include({ version: '2.11.0', source: 'BOQ_LIBTORCH' });
  });

  it('comes from a Python that has it, in the wanted variant only', async () => {
    const path = fakeLibtorch(join(root, 'python/torch'), 12, true);
    const env = { PATH: `${fakePath({ python3: path })}:${process.env.PATH}` };
    await libtorch.run({ ...context, env, variant: 'cuda' });
    expect(readRecord(context, 'libtorch')).to.include({ source: 'python3', variant: 'cuda' });
    expect(libtorch.isComplete({ ...context, variant: 'cpu' })).to.equal(false);
  });

  it('names a gap in the table of wheels', async () => {
    const path = join(root, 'third_party/libtorch.json');
    mkdirSync(join(root, 'third_party'));
    const env = { PATH: fakePath({ python3: '' }) };
    const fails = () => rejection(libtorch.run({ ...context, env, variant: 'cuda' }));
    const machine = `${process.platform}-${process.arch}`;
    const table = (wheels) =>
      JSON.stringify({ machine, variants: { cpu: {}, ...(wheels && { cuda: { wheels } }) } });
    for (const [content, message] of [
      [undefined, /libtorch\.json cannot be read/],
      ['{', /libtorch\.json cannot be read/],
      [JSON.stringify({ machine: 'vax-vms' }), /No pinned libtorch for \S+ \(only vax-vms\)/],
      [table(), /no wheels for the variant 'cuda'/],
      [table([]), /no wheels for the variant 'cuda'/],
      [table([{ requirement: 'torch==2.13.0' }]), /wheel 0 of 'cuda' has no file, sha256/],
    ]) {
      if (content !== undefined) writeFileSync(path, content);
      expect(await fails())
        .to.be.instanceOf(SetupError)
        .with.property('message')
        .that.matches(message)
        .and.matches(/BOQ_LIBTORCH/);
    }
  });

  it('is pinned for both variants, every wheel with its hash', () => {
    const { variants } = JSON.parse(readFileSync(join(repository, 'third_party/libtorch.json'), 'utf8'));
    for (const variant of ['cpu', 'cuda']) {
      const { wheels } = variants[variant];
      expect(wheels[0].requirement).to.match(/^torch={2,3}2\.13\.0/);
      for (const { requirement, file, sha256 } of wheels) {
        const [name, version] = file.split('-');
        expect(requirement.replace(/={2,3}/, ' ')).to.equal(`${name.replaceAll('_', '-')} ${version}`);
        expect(sha256).to.match(/^[0-9a-f]{64}$/);
      }
    }
  });

  it('refuses a BOQ_LIBTORCH that is none, or of another version', async () => {
    const at = (path) => ({ ...context, env: { BOQ_LIBTORCH: path } });
    expect(await rejection(libtorch.run(at(root)))).to.match(/is not libtorch: expected include\//);
    expect(await rejection(libtorch.run(at(fakeLibtorch(join(root, 'old'), 4))))).to.match(
      /is libtorch 2\.4\.0, expected 2\.11/,
    );
  });
});

describe('wheels', () => {
  it('are unpacked in part; a damaged one is an error', async () => {
    const wheel = join(root, 'w.whl');
    const make =
      "import sys,zipfile; z=zipfile.ZipFile(sys.argv[1],'w'); z.writestr('a/keep.txt','kept'); z.writestr('b/drop.txt','x'); z.close()";
    expect(spawnSync('python3', ['-c', make, wheel]).status).to.equal(0);
    await unpackWheel(context, 'test', wheel, join(root, 'out'), 'a/');
    expect(readFileSync(join(root, 'out/a/keep.txt'), 'utf8')).to.equal('kept');
    expect(existsSync(join(root, 'out/b'))).to.equal(false);
    expect(await rejection(unpackWheel(context, 'test', wheel, join(root, 'out'), 'c/'))).to.match(
      /holds nothing that matches/,
    );
    writeFileSync(wheel, readFileSync(wheel).toString('latin1').replace('kept', 'kelp'), 'latin1');
    expect(await rejection(unpackWheel(context, 'test', wheel, join(root, 'out'), 'a/'))).to.match(/CRC/);
  });
});

describe('build folder', () => {
  it('is removed after a killed build with Make, kept after one with Ninja', () => {
    for (const [generator, kept] of [
      ['Unix Makefiles', false],
      ['Ninja', true],
    ]) {
      const folder = join(root, generator.split(' ')[0]);
      mkdirSync(folder);
      writeFileSync(join(folder, 'CMakeCache.txt'), `CMAKE_GENERATOR:INTERNAL=${generator}\n`);
      clearBrokenBuild(folder);
      expect(existsSync(folder)).to.equal(true);
      writeFileSync(join(folder, 'building'), '');
      clearBrokenBuild(folder);
      expect(existsSync(folder), generator).to.equal(kept);
    }
  });
});

describe('test runner', () => {
  it("reads doctest's counts", () => {
    const output =
      '[doctest] test cases:  31 |  30 passed | 1 failed | 0 skipped\n[doctest] assertions: 9 | 9 passed | 0 failed |';
    expect(parseDoctest(output)).to.deep.equal({ passed: 30, failed: 1 });
    expect(parseDoctest('Segmentation fault')).to.equal(undefined);
  });

  it('counts a crash, and an exit that no test explains, as a failure', () => {
    expect(countRecord('pass a\nfail b\nend\n', 'exit code 1')).to.deep.equal({ passed: 1, failed: 1 });
    expect(countRecord('pass a\n', 'SIGSEGV')).to.include({ passed: 1, failed: 1, note: 'crashed: SIGSEGV' });
    expect(countRecord('', undefined)).to.include({ passed: 0, failed: 1 });
    expect(countRecord('pass a\nend\n', 'exit code 7')).to.include({ passed: 1, failed: 1 });
    expect(countRecord('pass a\nend\n', undefined)).to.deep.equal({ passed: 1, failed: 0 });
  });
});

describe('the doctor', () => {
  it('ends quietly when its reader has seen enough', async () => {
    const child = spawn(process.execPath, [join(repository, 'scripts/doctor.js')]);
    child.stdout.destroy();
    let said = '';
    child.stderr.on('data', (data) => {
      said += data;
    });
    const [code] = await once(child, 'close');
    expect(said).not.to.include('EPIPE');
    expect(code).to.equal(0);
  });
});
