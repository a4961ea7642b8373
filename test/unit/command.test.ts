import { PassThrough } from 'node:stream';
import { expect } from 'chai';
import { InvalidArgumentError } from 'commander';
import {
  describeError,
  exitCodeOf,
  integerOption,
  listOption,
  listsOption,
  numberOption,
  rangeOption,
  runCommand,
} from '../../ts/cli/command.js';
import { startProgress } from '../../ts/cli/progress.js';
import { BoqError } from '../../ts/core/errors.js';

/** Runs a command with stderr captured. */
async function exitOf(
  argv: string[],
  action: (signal: AbortSignal) => Promise<void>,
): Promise<{ code: number; stderr: string }> {
  const write = process.stderr.write;
  let stderr = '';
  process.stderr.write = ((text: string) => {
    stderr += text;
    return true;
  }) as typeof process.stderr.write;
  try {
    const code = await runCommand(
      'probe',
      'A command for this test.',
      (command, { signal }) => {
        command.option('--count <n>', 'a number', integerOption(1)).action(() => action(signal));
      },
      argv,
    );
    return { code, stderr };
  } finally {
    process.stderr.write = write;
  }
}

const nothing = async (): Promise<void> => undefined;

describe('commands', () => {
  it('ends with 0 when done, 1 when failed, 2 on wrong usage', async () => {
    expect((await exitOf([], nothing)).code).to.equal(0);
    const failed = await exitOf([], () => Promise.reject(new BoqError('BOQ_BROWSER', 'gone')));
    expect(failed).to.deep.equal({ code: 1, stderr: 'BOQ_BROWSER: gone\n' });
    expect((await exitOf(['--nope'], nothing)).code).to.equal(2);
    expect((await exitOf(['surplus'], nothing)).code).to.equal(2);
    const count = await exitOf(['--count', 'x'], nothing);
    expect(count.code).to.equal(2);
    expect(count.stderr).to.include('Expected an integer of at least 1').and.to.include('--help');
    expect((await exitOf([], () => Promise.reject(new BoqError('BOQ_USAGE', 'no')))).code).to.equal(2);
  });

  it('ends with 130 after SIGINT, having given the action its signal', async () => {
    const { code, stderr } = await exitOf([], async (signal) => {
      const aborted = new Promise((resolve) => signal.addEventListener('abort', resolve));
      process.emit('SIGINT');
      await aborted;
      signal.throwIfAborted();
    });
    expect(code).to.equal(130);
    expect(stderr).to.include('Stopping at the next safe point').and.to.include('again to go on');
    expect(process.listeners('SIGINT').filter((listener) => listener.name === 'interrupt')).to.have.length(0);
  });

  it('shows the stack of a defect, not of a known error', () => {
    expect(describeError(new BoqError('BOQ_USAGE', 'say it'))).to.equal('BOQ_USAGE: say it');
    expect(describeError(new TypeError('x'))).to.match(/^TypeError: x\n +at /);
    expect(exitCodeOf(new TypeError('x'))).to.equal(1);
  });

  it('parses ranges, numbers and lists, and refuses nonsense', () => {
    expect(rangeOption('20000-20009')).to.deep.equal({ from: 20_000, to: 20_009 });
    expect(rangeOption('7')).to.deep.equal({ from: 7, to: 7 });
    expect(numberOption(0, 1)('0.5')).to.equal(0.5);
    expect(listOption('a, b,')).to.deep.equal(['a', 'b']);
    expect(listsOption('b,c', listsOption('a'))).to.deep.equal(['a', 'b', 'c']);
    for (const parse of [
      () => rangeOption('9-3'),
      () => rangeOption('a-b'),
      () => rangeOption('99999999999999999999'),
      () => numberOption(0, 1)('1.5'),
      () => numberOption(0, 1)(''),
      () => numberOption(0, 1)('NaN'),
      () => integerOption(0)('1.5'),
      () => integerOption(0)('-1'),
      () => listOption(' , '),
    ]) {
      expect(parse).to.throw(InvalidArgumentError);
    }
  });
});

describe('progress outside a terminal', () => {
  function collector(): { stream: NodeJS.WriteStream; text: () => string } {
    const stream = new PassThrough();
    return { stream: stream as unknown as NodeJS.WriteStream, text: () => String(stream.read() ?? '') };
  }

  it('writes one plain line a tenth', () => {
    const { stream, text } = collector();
    const progress = startProgress('embed', 100, { stream });
    for (let done = 0; done <= 100; done++) progress.update(done, `${done} ok`);
    progress.stop();
    const lines = text().trimEnd().split('\n');
    expect(lines).to.have.length(11);
    expect(lines[5]).to.equal('embed: 50/100 (50 %) 50 ok');
  });

  it('tells a count that begins anew, as that of the next run', () => {
    const { stream, text } = collector();
    const progress = startProgress('embed', 1, { stream });
    for (const done of [0, 1, 0, 1]) progress.update(done);
    progress.stop();
    expect(text().trimEnd().split('\n')).to.have.length(4);
  });

  it('tells where an early end left off, and nothing when quiet', () => {
    const { stream, text } = collector();
    const progress = startProgress('embed', 10, { stream });
    progress.update(0);
    progress.setTotal(1000);
    progress.update(7);
    progress.stop();
    progress.stop();
    expect(text()).to.equal('embed: 0/10 (0 %)\nembed: 7/1000 (0 %)\n');
    startProgress('embed', 10, { stream, quiet: true }).update(10);
    expect(text()).to.equal('');
  });
});
