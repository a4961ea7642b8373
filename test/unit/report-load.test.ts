import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { isBoqError } from '../../ts/core/errors.js';
import { loadReport } from '../../ts/report/load.js';
import { comparisonTable } from '../../ts/report/terminal.js';
import { writeReport } from '../../ts/report/write.js';
import { type EpisodeSpec, writeModel, writeResults, writeRun } from '../support/run-folders.js';

const cells = ['alpha', 'beta'].flatMap((task) => [20_000, 20_001].map((seed) => ({ task, seed })));

function episodes(selector: string, wins: number[], changes: Partial<EpisodeSpec> = {}): EpisodeSpec[] {
  return cells.map((cell, index) => ({ ...cell, selector, success: wins.includes(index), ...changes }));
}

async function codeOf(action: Promise<unknown>): Promise<string> {
  try {
    await action;
  } catch (error) {
    return isBoqError(error) ? error.code : String(error);
  }
  return 'nothing thrown';
}

describe('report from folders', () => {
  let folder: string;
  const at = (...parts: string[]) => join(folder, ...parts);

  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'boq-report-'));
    await writeRun(at('train'), 'collect', episodes('epsilon-greedy', [0, 1, 2]));
    await writeModel(at('model'), [at('train', 'embeddings', 'f')]);
    await writeRun(at('main'), 'evaluate', [
      ...episodes('prompting', [0, 1]),
      ...episodes('best-of-q', [1, 2, 3], { generation: 'g', chosen: 1 }),
    ]);
    await writeResults(at('main'), {
      models: [{ path: at('model'), id: 'g', trainingTasks: ['alpha', 'beta'], control: null }],
    });
  });
  afterEach(() => rm(folder, { recursive: true }));

  it('follows an evaluation to its model and the model to its episodes', async () => {
    const data = await loadReport({ paths: [at('main')] });
    expect(data.trainings.map((training) => training.path)).to.deep.equal([at('model')]);
    expect(data.collections).to.have.length(1);
    expect(data.collections[0]).to.include({ episodes: 4, successes: 3, transitions: 4 });
    expect(data.provenance.map((block) => block.name)).to.deep.equal([
      'evaluate main',
      'collect train',
      'model model',
    ]);
  });

  it('compares the selectors on paired episodes', async () => {
    const [evaluation] = (await loadReport({ paths: [at('main')] })).evaluations;
    expect(evaluation!.baseline).to.equal('prompting');
    const [prompting, best] = evaluation!.entries;
    expect(prompting).to.include({ label: 'prompting', role: 'baseline' });
    expect(best).to.include({ label: 'best-of-q', role: 'method' });
    expect(best!.summary).to.include({ successRate: 0.75, difference: 0.25, wins: 2, losses: 1, pairs: 4 });
    expect(evaluation!.byTask).to.deep.equal([
      { task: 'alpha', rates: [1, 0.5] },
      { task: 'beta', rates: [0, 1] },
    ]);
    const table = comparisonTable(evaluation!, { color: false });
    expect(table).to.match(/best-of-q +│ +75\.0 % │ .* │ +\+25\.0 │/);
    expect(table).to.not.include('\u001b');
  });

  it('joins runs of the same tasks and seeds: controls, another policy, a repeated baseline', async () => {
    await writeRun(at('control'), 'evaluate', [
      ...episodes('prompting', [0, 1]),
      ...episodes('best-of-q', [0], { generation: 's' }),
    ]);
    await writeResults(at('control'), {
      models: [{ path: at('gone'), id: 's', trainingTasks: [], control: 'shuffled rewards' }],
    });
    await writeRun(at('sampled'), 'evaluate', episodes('prompting', [1], { policy: 'page-sampled-0.5' }));
    await writeResults(at('sampled'), { policy: 'page-sampled-0.5' });
    const data = await loadReport({ paths: [at('sampled'), at('control'), at('main')] });
    expect(data.evaluations).to.have.length(1);
    expect(
      data.evaluations[0]!.entries.map(({ label, role, summary }) => [label, role, summary.episodes]),
    ).to.deep.equal([
      ['prompting', 'baseline', 4],
      ['prompting of page-sampled-0.5', 'reference', 4],
      ['best-of-q', 'method', 4],
      ['best-of-q (shuffled rewards)', 'control', 4],
    ]);
  });

  it('keeps evaluations on other seeds or tasks apart', async () => {
    await writeRun(at('other'), 'evaluate', episodes('prompting', [0]));
    await writeResults(at('other'), { tasks: ['alpha'], estimand: 'unseen-tasks' });
    const data = await loadReport({ paths: [at('main'), at('other')] });
    expect(data.evaluations.map((evaluation) => evaluation.estimand)).to.deep.equal([
      'unseen-seeds',
      'unseen-tasks',
    ]);
  });

  it('shows episodes whose outcome the values changed, wins first, with pictures and the baseline beside', async () => {
    const { examples } = await loadReport({ paths: [at('main')], examples: 3 });
    expect(examples.map((example) => example.heading)).to.deep.equal([
      'beta, seed 20000',
      'beta, seed 20001',
      'alpha, seed 20000',
    ]);
    expect(examples[2]!.reason).to.equal('best-of-q failed where prompting succeeded.');
    expect(examples[0]!.steps[0]!.image).to.match(/^data:image\/webp;base64,UklGR/);
    expect(examples[0]!.steps[0]).to.deep.include({ chosen: 1, point: { x: 10, y: 20 } });
    expect(examples[0]!.baseline!.actions).to.deep.equal(['click element: button "A": clicked 0']);
  });

  it('still reports where screenshots were removed', async () => {
    for (const attempt of await readdir(at('main', 'attempts'))) {
      await rm(at('main', 'attempts', attempt, 'shots'), { recursive: true });
    }
    const { examples } = await loadReport({ paths: [at('main')], examples: 1 });
    expect(examples[0]!.steps[0]!.image).to.equal(null);
  });

  it('thins long curves and leaves out constants', async () => {
    const { trainings } = await loadReport({ paths: [at('model')] });
    expect(trainings[0]!.curves.map((curve) => curve.metric)).to.deep.equal(['loss/q']);
    const { points } = trainings[0]!.curves[0]!;
    expect(points).to.have.length(400);
    expect(points.at(-1)!.step).to.equal(999);
  });

  it('shows what held-out episodes say where the model has it', async () => {
    const before = await loadReport({ paths: [at('model')] });
    expect(before.trainings[0]!.offline).to.equal(null);
    const figures = { auc: 0.7, brier: 0.2, calibrationError: 0.1, pairwiseAccuracy: null };
    const picks = { decisions: 0, byIndex: [], overrideRate: null };
    const report = { transitions: 5, pairs: 0, regressor: null, picks, spreadAgainstError: null };
    const predictors = { q: figures, v: figures, stepNumber: figures, task: figures };
    await writeFile(at('model', 'offline.json'), JSON.stringify({ ...report, ...predictors }));
    const { trainings } = await loadReport({ paths: [at('model')] });
    expect(trainings[0]!.offline!.rows[0]).to.deep.equal(['Q', '0.700', '0.200', '0.100', '—']);
    await rm(at('model', 'offline.json'));
  });

  it('writes one file and leaves no draft behind', async () => {
    const written = await writeReport({ paths: [at('main')], out: at('out', 'report.html') });
    expect(await readdir(at('out'))).to.deep.equal(['report.html']);
    expect(Buffer.byteLength(await readFile(written.path))).to.equal(written.bytes);
    expect(
      await codeOf(writeReport({ paths: [at('main')], out: at('main', 'run.json', 'r.html') })),
    ).to.equal('BOQ_FILE_WRITE');
  });

  it('names what is wrong with a folder', async () => {
    await mkdir(at('empty'));
    expect(await codeOf(loadReport({ paths: [at('empty')] }))).to.equal('BOQ_RUN_INVALID');
    expect(await codeOf(loadReport({ paths: [at('missing')] }))).to.equal('BOQ_RUN_INVALID');
    const [commit] = await readdir(at('main', 'episodes'));
    await writeFile(at('main', 'episodes', commit!), '{');
    expect(await codeOf(loadReport({ paths: [at('main')] }))).to.equal('BOQ_RUN_INVALID');
    await writeRun(at('unfinished'), 'evaluate', []);
    expect(await codeOf(loadReport({ paths: [at('unfinished')] }))).to.equal('BOQ_FILE_NOT_FOUND');
    await writeFile(at('unfinished', 'results.json'), '{"version":9}');
    expect(await codeOf(loadReport({ paths: [at('unfinished')] }))).to.equal('BOQ_RUN_INVALID');
  });
});
