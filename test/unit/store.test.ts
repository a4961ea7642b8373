import { fork } from 'node:child_process';
import { once } from 'node:events';
import { appendFile, mkdtemp, readdir, readFile, rm, truncate, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect } from 'chai';
import { keyName } from '../../ts/store/keys.js';
import { createMasker } from '../../ts/store/masking.js';
import { FolderRun, openRun } from '../../ts/store/run.js';
import type { EpisodeKey, StepRecord } from '../../ts/store/types.js';

const start = { instruction: 'click "OK"', startUrl: 'file:///page.html' };
const end = { outcome: 'success', reward: 1, rawReward: 0.9, answer: null, finalObservation: null } as const;
const image = { bytes: new Uint8Array([1, 2, 3]), format: 'webp' } as const;

function key(changes: Partial<EpisodeKey> = {}): EpisodeKey {
  const base = { benchmark: 'miniwob', task: 'click-button', seed: 3, policy: 'page', selector: 'random' };
  return { ...base, generation: 'none', repeat: 0, ...changes };
}

function step(index: number, screenshot: string, thought = 'named in the task'): StepRecord {
  return {
    index,
    observation: {
      url: 'file:///page.html',
      title: '',
      viewport: { width: 332, height: 214, deviceScaleFactor: 1 },
      scroll: { x: 0, y: 0 },
      screenshot,
      events: [],
    },
    candidates: [{ action: { type: 'click', element: 'button "OK"' }, thought, note: '' }],
    candidateErrors: [],
    scores: null,
    selection: { selector: 'random', index: 0, reason: 'drawn from 1' },
    grounding: { localizer: 'page', point: { x: 1, y: 2 }, element: 'button "OK"' },
    result: { ok: true, message: 'clicked button "OK"' },
    usage: [],
    timings: { observe: 1.5 },
  };
}

async function playOne(run: FolderRun, of: EpisodeKey, steps = 2) {
  const attempt = await run.begin(of, start);
  for (let index = 0; index < steps; index++) {
    await attempt.step(step(index, attempt.shot(String(index).padStart(3, '0'), image)));
  }
  return attempt.commit(end);
}

async function failure(work: Promise<unknown>): Promise<{ code: string; message: string }> {
  try {
    await work;
  } catch (error) {
    return error as { code: string; message: string };
  }
  throw new Error('expected a failure, got none');
}

describe('run store', () => {
  let folder: string;
  let run: FolderRun;
  const create = (config = {}) => FolderRun.create(folder, { kind: 'collect', config, seed: 1 });

  beforeEach(async () => {
    folder = join(await mkdtemp(join(tmpdir(), 'boq-store-')), 'run');
    run = await create();
  });
  afterEach(() => rm(join(folder, '..'), { recursive: true }));

  it('gives back what was committed: records, steps in order and screenshots', async () => {
    await playOne(run, key({ seed: 1 }));
    await playOne(run, key({ seed: 2 }), 3);
    const found = [];
    for await (const episode of (await openRun(folder)).episodes()) found.push(episode);
    expect(found.map(({ record }) => record.key.seed)).to.deep.equal([1, 2]);
    expect(found.map(({ steps }) => steps.map(({ index }) => index))).to.deep.equal([
      [0, 1],
      [0, 1, 2],
    ]);
    const { record, steps } = found[0]!;
    expect(record).to.include({ outcome: 'success', reward: 1, rawReward: 0.9, steps: 2, ...start });
    const shot = await readFile(run.shotPath(record.attempt, steps[1]!.observation.screenshot));
    expect([...shot]).to.deep.equal([1, 2, 3]);
  });

  it('counts a key once, whoever commits first', async () => {
    const first = await run.begin(key(), start);
    const second = await run.begin(key(), start);
    expect((await second.commit(end)).counts).to.equal(true);
    expect((await first.commit({ ...end, reward: 0, outcome: 'failure' })).counts).to.equal(false);
    expect((await run.find(key()))?.attempt).to.equal(second.id);
    expect((await run.committed()).size).to.equal(1);
  });

  it('counts a key once when processes race for it', async () => {
    const child = fileURLToPath(new URL('support/store-child.ts', import.meta.url));
    const racers = Array.from({ length: 3 }, () =>
      fork(child, ['race', folder], { execArgv: ['--import', 'tsx'] }),
    );
    const reports = await Promise.all(
      racers.map(async (racer) => {
        const [won] = (await once(racer, 'message')) as [number];
        await once(racer, 'exit');
        return won;
      }),
    );
    expect(reports.reduce((sum, won) => sum + won)).to.equal(20);
    expect((await run.committed()).size).to.equal(20);
    expect((await readdir(join(folder, 'episodes'))).filter((name) => !name.endsWith('.json'))).to.deep.equal(
      [],
    );
    const index = (await readFile(join(folder, 'index.jsonl'), 'utf8')).trim().split('\n');
    expect(new Set(index.map((line) => JSON.parse(line).key.seed)).size).to.equal(20);
  });

  it('keeps the torn episode of a killed process to look at, and does not count it', async () => {
    const child = fileURLToPath(new URL('support/store-child.ts', import.meta.url));
    const writer = fork(child, ['write-forever', folder], { execArgv: ['--import', 'tsx'] });
    await once(writer, 'message');
    writer.kill('SIGKILL');
    await once(writer, 'exit');

    const resumed = await create();
    expect((await resumed.committed()).size).to.equal(0);
    const [id] = await resumed.attempts();
    const stepsFile = join(folder, 'attempts', id!, 'steps.jsonl');
    const whole = (await readFile(stepsFile, 'utf8')).split('\n').length - 1;
    await appendFile(stepsFile, '{"index": 99, "observ');
    const seen = await resumed.attempt(id!);
    expect(seen.torn).to.equal(true);
    expect(seen.attempt.key).to.deep.equal(key());
    expect(seen.steps).to.have.length(whole);
    for (const { observation } of seen.steps) await readFile(resumed.shotPath(id!, observation.screenshot));

    await playOne(resumed, key());
    const found = [];
    for await (const record of resumed.records()) found.push(record);
    expect(found).to.have.length(1);
  });

  it('ignores what a process left that died while it published', async () => {
    await writeFile(join(folder, 'episodes', '.0b1c.tmp'), '{"version": 1, "ke');
    await playOne(run, key());
    expect((await run.committed()).size).to.equal(1);
  });

  it('rebuilds the index from the commits', async () => {
    await playOne(run, key({ seed: 1 }));
    await playOne(run, key({ seed: 2 }));
    await writeFile(join(folder, 'index.jsonl'), 'torn');
    await run.rebuildIndex();
    const lines = (await readFile(join(folder, 'index.jsonl'), 'utf8')).trim().split('\n');
    expect(lines.map((line) => JSON.parse(line).key.seed)).to.deep.equal([1, 2]);
  });

  it('continues a run with the same options and refuses other ones', async () => {
    const folder2 = join(folder, '..', 'other');
    const begin = (config: Record<string, number>) =>
      FolderRun.create(folder2, { kind: 'collect', config, seed: 1 });
    const { record } = await begin({ n: 3, workers: 2 });
    expect((await begin({ n: 3, workers: 6 })).record).to.deep.equal(record);
    const refused = await failure(begin({ n: 5, workers: 2 }));
    expect(refused.code).to.equal('BOQ_RUN_EXISTS');
    expect(refused.message).to.include('n = 3').and.include('n = 5');
  });

  it('names file and line of a broken step', async () => {
    const { record } = await playOne(run, key());
    const file = join(folder, 'attempts', record.attempt, 'steps.jsonl');
    const lines = (await readFile(file, 'utf8')).split('\n');
    await writeFile(file, [lines[0], '{"index": 1}', ''].join('\n'));
    const fault = await failure(run.steps(record));
    expect(fault.code).to.equal('BOQ_RUN_INVALID');
    expect(fault.message).to.include(`${file}, line 2`).and.include('observation');
  });

  it('notices a committed episode whose steps were cut or changed', async () => {
    const { record } = await playOne(run, key());
    const file = join(folder, 'attempts', record.attempt, 'steps.jsonl');
    const text = await readFile(file, 'utf8');
    await truncate(file, text.indexOf('\n') + 1);
    expect((await failure(run.steps(record))).code).to.equal('BOQ_RUN_INVALID');
    await writeFile(file, text.replace('named in the task', 'shown in the task'));
    expect((await failure(run.steps(record))).code).to.equal('BOQ_RUN_INVALID');
    await writeFile(file, text);
    expect(await run.steps(record)).to.have.length(2);
  });

  it('refuses commits and runs that are broken or of another version', async () => {
    const { record } = await playOne(run, key());
    const commit = join(folder, 'episodes', `${keyName(key())}.json`);
    for (const [content, words] of [
      ['{"version": 1', 'JSON'],
      ['{"version": 2}', 'found 2'],
      [JSON.stringify({ ...record, outcome: 'won' }), '/outcome'],
    ] as const) {
      await writeFile(commit, content);
      const fault = await failure(run.find(key()));
      expect(fault.code).to.equal('BOQ_RUN_INVALID');
      expect(fault.message).to.include(commit).and.include(words);
    }
    await writeFile(join(folder, 'run.json'), '{"version": 9}');
    expect((await failure(openRun(folder))).message).to.include('found 9');
    expect((await failure(openRun(join(folder, 'none')))).code).to.equal('BOQ_FILE_NOT_FOUND');
  });

  it('gives no path outside the attempt', async () => {
    const { record } = await playOne(run, key());
    for (const name of ['../../run.json', '/etc/passwd', 'shots/../../../run.json', '']) {
      expect(() => run.shotPath(record.attempt, name))
        .to.throw()
        .with.property('code', 'BOQ_RUN_INVALID');
    }
  });

  it('reports a screenshot that could not be written with the step that shows it', async () => {
    const attempt = await run.begin(key(), start);
    await rm(join(folder, 'attempts', attempt.id, 'shots'), { recursive: true });
    const fault = await failure(attempt.step(step(0, attempt.shot('000', image))));
    expect(fault.code).to.equal('BOQ_FILE_WRITE');
    await attempt.abandon();
  });

  it('writes no secret anywhere', async () => {
    const secret = 'hunter2-"quoted"\\password';
    const masked = await FolderRun.create(
      join(folder, '..', 'masked'),
      { kind: 'agent', config: { header: `x ${secret}` }, seed: 1 },
      { secrets: [secret] },
    );
    const attempt = await masked.begin(key(), { ...start, instruction: `log in with ${secret}` });
    const shapes = 'sk-abcdefghijklmnopqrstuvwxyz and http://ada:lovelace@host/';
    await attempt.step(step(0, attempt.shot('000', image), `${secret} ${shapes}`));
    const { record } = await attempt.commit({ ...end, answer: secret });
    const names = ['run.json', 'index.jsonl', `episodes/${keyName(key())}.json`];
    names.push(`attempts/${attempt.id}/steps.jsonl`, `attempts/${attempt.id}/attempt.json`);
    for (const name of names) {
      const text = await readFile(join(masked.folder, name), 'utf8');
      expect(text, name).not.to.match(/hunter2|sk-abc|lovelace/);
      for (const line of text.trim().split(name.endsWith('.jsonl') ? '\n' : '\0')) JSON.parse(line);
    }
    expect(await masked.steps(record)).to.have.length(1);
  });
});

describe('keyName', () => {
  it('tells all keys apart and is safe as a file name', () => {
    const odd = 'a/b:c*?"<>| é'.repeat(30);
    const keys = [
      key(),
      key({ task: odd }),
      key({ task: `${odd}2` }),
      key({ policy: 'page-sampled' }),
      key({ generation: 'm1' }),
      key({ repeat: 1 }),
      key({ seed: -3 }),
    ];
    const names = keys.map(keyName);
    expect(new Set(names).size).to.equal(keys.length);
    for (const name of names) expect(name).to.match(/^[\w.=-]{1,130}$/);
  });
});

describe('createMasker', () => {
  it('leaves short values and plain text alone', () => {
    const mask = createMasker(['ok', '12345']);
    const text = 'click ok 12345, email ada@lovelace.org at https://example.org:8080/a@b';
    expect(mask(text)).to.equal(text);
  });
});
