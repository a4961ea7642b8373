import { appendFile, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { isBoqError } from '../../ts/core/errors.js';
import { LoopBudget, type LoopLimits, parseLimits } from '../../ts/evaluation/loop/budget.js';
import { readCurve } from '../../ts/evaluation/loop/curve.js';
import { type IterateOptions, type LoopProgress, runLoop } from '../../ts/evaluation/loop/iterate.js';
import { Journal, type LoopEvent, readJournal, spentBefore } from '../../ts/evaluation/loop/journal.js';
import { type LoopPlan, paperLoop } from '../../ts/evaluation/loop/plan.js';
import type {
  CollectOutcome,
  LoopRun,
  LoopStages,
  LoopTraining,
  Tell,
  Validation,
} from '../../ts/evaluation/loop/types.js';
import { loadReport } from '../../ts/report/load.js';
import { renderReport } from '../../ts/report/page.js';
import { curveTable } from '../../ts/report/terminal.js';

const perRun = 20;

function plan(changes: Partial<LoopPlan> = {}): LoopPlan {
  return {
    benchmark: 'fake',
    tasks: ['a', 'b'],
    policy: 'scripted',
    localizer: paperLoop.localizer,
    seeds: { from: 0, to: 9 },
    sameSeeds: paperLoop.sameSeeds,
    repeats: 1,
    n: [3],
    maxSteps: null,
    explore: { ...paperLoop.explore },
    cycles: 2,
    exploit: { ...paperLoop.exploit },
    curriculum: paperLoop.curriculum,
    warmStart: paperLoop.warmStart,
    preset: 'default',
    config: {},
    validation: { tasks: ['a'], seeds: { from: 10_000, to: 10_009 }, repeats: 1 },
    seed: 7,
    ...changes,
  };
}

/** Stages that play nothing. What they have done stays, as files would, when the process is gone. */
class FakeStages implements LoopStages {
  readonly calls: string[] = [];
  readonly runs: LoopRun[] = [];
  readonly trainings: LoopTraining[] = [];
  readonly kept: string[] = [];
  /** Throws at this call, counted from 0. */
  crashAt = Number.POSITIVE_INFINITY;
  /** By generation; -1: the policy. */
  success = [0.5, 0.6, 0.8, 0.7];
  margin: number | null = null;
  startValues: Record<string, number> = {};
  usdPerEpisode = 0;
  faulty = '';
  /** Waited for before a run is played. */
  gate: () => Promise<void> = async () => {};
  readonly #episodes = new Map<string, number>();

  #call(name: string): void {
    if (this.calls.length === this.crashAt) {
      this.crashAt = Number.POSITIVE_INFINITY;
      throw new Error(`crash at ${name}`);
    }
    this.calls.push(name);
  }

  async collect(run: LoopRun, budget: LoopBudget, tell: Tell): Promise<CollectOutcome> {
    await this.gate();
    const name = run.path.split('/').at(-1)!;
    this.runs.push(run);
    let episodes = this.#episodes.get(name) ?? 0;
    budget.addUsd(episodes * this.usdPerEpisode);
    const left = budget.episodesLeft;
    for (let played = 0; episodes < perRun && played < left && budget.exhausted() === null; played++) {
      this.#episodes.set(name, ++episodes);
      budget.addUsd(this.usdPerEpisode);
      tell({ done: episodes, total: perRun, note: '', episodes });
    }
    this.#call(`collect ${name}`);
    const faults = this.faulty === name ? [{ key: {} as never, error: new Error('endpoint') }] : [];
    const usd = episodes * this.usdPerEpisode;
    return {
      episodes,
      successes: episodes / 2,
      steps: 3 * episodes,
      usd,
      complete: episodes === perRun,
      faults,
    };
  }

  async embed(runs: readonly string[]): Promise<void> {
    if (!this.calls.includes(`embed ${runs.length}`)) this.#call(`embed ${runs.length}`);
  }

  async train(request: LoopTraining): Promise<{ transitions: number; seconds: number }> {
    this.trainings.push(request);
    this.#call(`train ${request.out.split('/').at(-1)} on ${request.episodes}`);
    return { transitions: 3 * request.episodes, seconds: 1 };
  }

  async validate(model: string | null, out: string): Promise<Validation> {
    const generation = model === null ? -1 : Number(model.split('/g').at(-1));
    this.#call(`validate ${out.split('/').at(-1)}`);
    const successRate = this.success[generation + 1]!;
    return {
      episodes: 10,
      successRate,
      standardError: 0.1,
      margin: model === null ? null : this.margin,
      startValues: model === null ? {} : this.startValues,
      usd: 0,
    };
  }

  async keep(from: string): Promise<void> {
    this.kept.push(from.split('/').at(-1)!);
  }
}

const whole = [
  'validate policy',
  ...[1, 2, 3, 4, 5].map((run) => `collect g0-${run}`),
  'embed 5',
  'train g0 on 100',
  'validate g0-100',
  'collect g1-1',
  'collect g1-2',
  'embed 7',
  'train g1 on 140',
  'validate g1-140',
  'collect g2-1',
  'collect g2-2',
  'embed 9',
  'train g2 on 180',
  'validate g2-180',
];

describe('the loop', () => {
  let folder: string;
  const play = (stages: LoopStages, changes: Partial<IterateOptions> = {}) =>
    runLoop({ plan: plan(), out: folder, ...changes }, stages);
  const codeOf = async (work: Promise<unknown>): Promise<string> =>
    work.then(
      () => 'nothing thrown',
      (error) => (isBoqError(error) ? `${error.code}: ${error.message}` : String(error)),
    );

  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'boq-loop-'));
  });
  afterEach(() => rm(folder, { recursive: true }));

  it('explores, trains, and adds in cycles, always training on everything', async () => {
    const stages = new FakeStages();
    const result = await play(stages);
    expect(stages.calls).to.deep.equal(whole);
    expect(stages.runs.map(({ selector }) => selector).slice(4, 6)).to.deep.equal([
      'epsilon-greedy@epsilon=0.5',
      'best-of-q',
    ]);
    expect(stages.runs.map(({ model }) => model?.split('/').at(-1) ?? null)).to.deep.equal([
      ...[null, null, null, null, null],
      ...['g0', 'g0', 'g1', 'g1'],
    ]);
    expect(stages.runs.map(({ seeds }) => seeds.from)).to.deep.equal([0, 10, 20, 30, 40, 50, 60, 70, 80]);
    expect(new Set(stages.runs.map(({ seed }) => seed)).size).to.equal(9);
    expect(result.curve.map(({ trained }) => trained)).to.deep.equal([0, 100, 140, 180]);
    expect(result.endedBy).to.equal(null);
  });

  it('keeps the best by validation beside the last', async () => {
    const stages = new FakeStages();
    const { best, last } = await play(stages);
    expect(stages.kept.at(-1)).to.equal('g1');
    expect(best).to.equal(join(folder, 'models', 'best'));
    expect(last).to.equal(join(folder, 'models', 'g2'));
  });

  it('goes on from every point at which it can be killed, and does nothing twice', async () => {
    for (let crashAt = 0; crashAt < whole.length; crashAt++) {
      const out = join(folder, String(crashAt));
      const stages = new FakeStages();
      stages.crashAt = crashAt;
      expect(await codeOf(play(stages, { out }))).to.include('crash');
      const result = await play(stages, { out });
      expect(stages.calls, `after a crash at ${whole[crashAt]}`).to.deep.equal(whole);
      expect(result.curve).to.have.length(4);
    }
  });

  it('finds everything done the second time', async () => {
    const stages = new FakeStages();
    await play(stages);
    const { curve } = await play(stages);
    expect(stages.calls).to.have.length(whole.length);
    expect(curve).to.have.length(4);
  });

  it('can be given more cycles later, and refuses another plan', async () => {
    const stages = new FakeStages();
    await play(stages, { plan: plan({ cycles: 1 }) });
    await play(stages, { plan: plan({ cycles: 2 }) });
    expect(stages.calls).to.deep.equal(whole);
    const other = await codeOf(play(stages, { plan: plan({ n: [5] }) }));
    expect(other).to.include('BOQ_RUN_EXISTS').and.include('n = [3]').and.include('n = [5]');
  });

  it('spends a budget of episodes exactly, learns from what it has, and goes on with a larger one', async () => {
    const stages = new FakeStages();
    const result = await play(stages, { budget: { episodes: 130 } });
    expect(stages.calls.slice(9)).to.deep.equal([
      'collect g1-1',
      'collect g1-2',
      'embed 7',
      'train g1 on 130',
      'validate g1-130',
    ]);
    expect(result.endedBy).to.equal('130 of 130 episodes are played');
    await play(stages, { budget: { episodes: 130 } });
    expect(stages.calls).to.have.length(14);
    const { endedBy } = await play(stages);
    expect(endedBy).to.equal(null);
    const rest = ['collect g1-2', ...whole.slice(11)].filter((call) => call !== 'embed 7');
    expect(stages.calls.slice(14)).to.deep.equal(rest);
  });

  it('counts dollars over sittings, each once', async () => {
    const stages = new FakeStages();
    stages.usdPerEpisode = 0.01;
    const first = await play(stages, { budget: { usd: 0.5 } });
    expect(first.endedBy).to.include('dollars');
    expect(stages.calls.filter((call) => call.startsWith('train'))).to.deep.equal(['train g0 on 50']);
    const events = await readJournal(join(folder, 'journal.jsonl'));
    // The run that was cut off is counted again from its episodes when it goes on.
    expect(spentBefore(events).usd).to.be.closeTo(0.4, 1e-9);
    const second = await play(stages, { budget: { usd: 1.1 } });
    expect(second.curve.at(-1)!.trained).to.equal(110);
  });

  it('counts minutes of all sittings, and not those between them', () => {
    const at = (minute: number) => new Date(Date.UTC(2026, 0, 1, 0, minute)).toISOString();
    const events = [
      { at: at(0), event: 'sitting' },
      { at: at(4), event: 'playing', run: 'runs/g0-1', episodes: 3 },
      { at: at(50), event: 'sitting' },
      { at: at(53), event: 'finished', reason: 'x' },
    ] as LoopEvent[];
    expect(spentBefore(events).minutes).to.equal(7);
    let now = 0;
    const budget = new LoopBudget({ minutes: 10 }, { minutes: 7, usd: 0 }, { clock: () => now });
    expect(budget.exhausted()).to.equal(null);
    now = 3 * 60_000;
    expect(budget.exhausted()).to.equal('10.0 of 10 minutes are used');
  });

  it('asks for the price of a model before it spends dollars on it', () => {
    const usage = { purpose: 'policy', model: 'unknown', inputTokens: 1, outputTokens: 1 } as const;
    new LoopBudget({}).add([usage]);
    expect(() => new LoopBudget({ usd: 1 }).add([usage])).to.throw('price');
    const priced = new LoopBudget({ usd: 1 });
    priced.add([{ ...usage, model: 'gpt-4.1', inputTokens: 500_000, outputTokens: 0 }]);
    expect(priced.exhausted()).to.include('1.0000 of 1 dollars');
    const counted = new LoopBudget({ calls: 2 }, undefined, { prices: { unknown: { input: 1, output: 1 } } });
    counted.add([usage, usage]);
    expect(counted.exhausted()).to.include('2 of 2 calls');
    expect(counted.usd).to.be.greaterThan(0);
  });

  it('hands a margin that validation chose to the runs that use the model', async () => {
    const stages = new FakeStages();
    stages.margin = 0.1;
    await play(stages, { plan: plan({ exploit: { runs: 2, selector: 'best-of-q@margin=auto' } }) });
    expect(stages.runs.at(-1)!.selector).to.equal('best-of-q@margin=0.1');
  });

  it('trains from scratch, or where asked to from the model before', async () => {
    const starts = async (warmStart: boolean, out: string) => {
      const stages = new FakeStages();
      await play(stages, { plan: plan({ warmStart }), out: join(folder, out) });
      return stages.trainings.map(({ startFrom }) => startFrom?.split('/').at(-1) ?? null);
    };
    expect(await starts(false, 'cold')).to.deep.equal([null, null, null]);
    expect(await starts(true, 'warm')).to.deep.equal([null, 'g0', 'g1']);
  });

  it('plays, where asked to, the tasks that the model is least sure of, on the more seeds', async () => {
    const stages = new FakeStages();
    stages.startValues = { a: 0.97, b: 0.4 };
    await play(stages, { plan: plan({ curriculum: 0.5 }) });
    const runs = stages.runs.map(({ tasks, seeds }) => `${tasks.join()} ${seeds.from}-${seeds.to}`);
    expect(runs.slice(4)).to.deep.equal(['a,b 80-89', 'b 100-119', 'b 120-139', 'b 140-159', 'b 160-179']);
    expect(await codeOf(play(new FakeStages(), { plan: plan({ curriculum: 0 }) }))).to.include('curriculum');
  });

  it('takes turns in N, and can play the same seeds in every run', async () => {
    const stages = new FakeStages();
    await play(stages, { plan: plan({ n: [1, 3, 5], sameSeeds: true, cycles: 1 }) });
    expect(stages.runs.map(({ n }) => n)).to.deep.equal([1, 3, 5, 1, 3, 5, 1]);
    expect(new Set(stages.runs.map(({ seeds }) => `${seeds.from}-${seeds.to}`))).to.deep.equal(
      new Set(['0-9']),
    );
  });

  it('stops at an episode that cannot be played, and tries it again', async () => {
    const stages = new FakeStages();
    stages.faulty = 'g0-2';
    const { faults, curve } = await play(stages);
    expect(faults).to.have.length(1);
    expect(curve).to.have.length(1);
    stages.faulty = '';
    expect((await play(stages)).curve).to.have.length(4);
  });

  it('stops when asked to, and is not played by two at a time', async () => {
    const abort = new AbortController();
    const stages = new FakeStages();
    const onProgress = ({ stage }: LoopProgress) => {
      if (stage.includes('g0-3')) abort.abort();
    };
    expect(await codeOf(play(stages, { signal: abort.signal, onProgress }))).to.include('BOQ_ABORTED');
    expect(stages.calls.at(-1)).to.equal('collect g0-3');
    let refused = '';
    stages.gate = async () => {
      stages.gate = async () => {};
      refused = await codeOf(play(new FakeStages()));
    };
    await play(stages);
    expect(refused).to.include('BOQ_BUSY');
  });

  it('tells how far the whole loop is', async () => {
    const told: number[] = [];
    const stages = new FakeStages();
    await play(stages, { onProgress: ({ overall }) => told.push(overall.done / overall.total) });
    expect(told).to.deep.equal([...told].sort((a, b) => a - b));
    expect(told[0]).to.be.below(0.1);
    // 9 runs of 20 episodes and 4 points of 10: the last run is played before the last point.
    expect(told.at(-1)).to.be.closeTo((180 + 30) / 220, 1e-9);
  });

  it('refuses validation seeds that some run will train on', async () => {
    const seeds = { from: 85, to: 99 };
    const work = play(new FakeStages(), { plan: plan({ validation: { tasks: ['a'], seeds, repeats: 1 } }) });
    expect(await codeOf(work))
      .to.include('BOQ_USAGE')
      .and.include('up to 0-89');
  });

  it('has its learning curve in the report while it grows', async () => {
    const stages = new FakeStages();
    const seen: number[] = [];
    await play(stages, {
      onPoint: async (curve) => {
        const data = await loadReport({ paths: [folder] });
        expect(data.loops[0]!.points).to.deep.equal(curve);
        expect(renderReport(data)).to.include('Learning curve');
        seen.push(curve.length);
      },
    });
    expect(seen).to.deep.equal([1, 2, 3, 4]);
    expect(curveTable(await readCurve(folder)))
      .to.include('policy alone')
      .and.include('80.0 %');
  });
});

describe('the journal', () => {
  let folder: string;
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'boq-journal-'));
  });
  afterEach(() => rm(folder, { recursive: true }));

  it('drops a line that was cut off, and goes on behind the last whole one', async () => {
    const path = join(folder, 'journal.jsonl');
    {
      await using journal = await Journal.open(path);
      await journal.append({ event: 'sitting' });
    }
    await appendFile(path, '{"at":"2026-01-01T00:00:00.000Z","event":"trai');
    {
      await using journal = await Journal.open(path);
      expect(journal.events).to.have.length(1);
      await Promise.all([
        journal.append({ event: 'finished', reason: 'a' }),
        journal.append({ event: 'finished', reason: 'b' }),
      ]);
    }
    const text = await readFile(path, 'utf8');
    expect(text.endsWith('\n')).to.equal(true);
    expect(
      (await readJournal(path)).map((entry) => ('reason' in entry ? entry.reason : entry.event)),
    ).to.deep.equal(['sitting', 'a', 'b']);
  });

  it('says which line is damaged', async () => {
    const path = join(folder, 'journal.jsonl');
    await writeFile(path, '{"at":"2026","event":"sitting"}\nnonsense\n');
    let message = '';
    await readJournal(path).catch((error: Error) => {
      message = error.message;
    });
    expect(message).to.include('line 2');
  });
});

describe('a loop budget', () => {
  it('is written with its unit', () => {
    const cases: [string, LoopLimits][] = [
      ['90min', { minutes: 90 }],
      ['5000 episodes', { episodes: 5000 }],
      ['2.5usd,1.5m', { usd: 2.5, minutes: 1.5 }],
    ];
    for (const [text, limits] of cases) expect(parseLimits(text)).to.deep.equal(limits);
    for (const text of ['', '5', 'min', '0min', '-1usd', '5 parsecs']) {
      expect(() => parseLimits(text), text).to.throw('90min');
    }
  });
});
