import { mkdtemp, readdir, readFile, rename, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { isBoqError } from '../../ts/core/errors.js';
import { evaluate } from '../../ts/evaluation/evaluate.js';
import type { Experiment } from '../../ts/evaluation/experiment.js';
import { ModelSet } from '../../ts/evaluation/models.js';
import type { Results } from '../../ts/evaluation/results.js';
import { runExperiment } from '../../ts/evaluation/run-experiment.js';
import type { ModelConfig } from '../../ts/learning/model-card.js';
import { writeTinyCheckpoint } from '../../ts/learning/tiny-checkpoint.js';
import { confirm } from '../../ts/report/confirmation.js';
import { loadComparisons } from '../../ts/report/load.js';
import { writeReport } from '../../ts/report/write.js';

/** The demonstration's shape, as small as it gets. */
const experiment: Experiment = {
  benchmark: 'miniwob',
  policy: 'page',
  n: 3,
  training: {
    tasks: ['click-button', 'click-checkboxes'],
    repeats: 1,
    selector: 'epsilon-greedy@epsilon=0.5',
    draws: [
      { seed: 1, seeds: { from: 0, to: 2 } },
      { seed: 2, seeds: { from: 100, to: 102 } },
    ],
    config: { steps: 8, projection: 8, hidden: [8], validationFraction: 0 },
  },
  validation: { tasks: ['click-button', 'click-checkboxes'], seeds: { from: 10_000, to: 10_000 } },
  questions: [
    { part: 'seeds', tasks: ['click-button', 'click-checkboxes'], seeds: { from: 20_000, to: 20_000 } },
  ],
  selectors: ['prompting', 'best-of-q', 'best-of-q@margin=auto'],
  controls: { shuffled: ['best-of-q'], constant: ['best-of-q'] },
  variants: [{ name: 'monte-carlo', config: { qTarget: 'monte-carlo' }, selectors: ['best-of-q'] }],
  references: [
    { policy: 'page-sampled', temperature: 0.5 },
    { policy: 'page', refit: 'filtered' },
  ],
  confirmation: [{ part: 'seeds', label: 'best-of-q', against: 'best-of-q, monte-carlo' }],
};

describe('a whole experiment', () => {
  let root: string;
  let checkpoint: string;
  const options = () => ({ name: 'small', root, embedder: checkpoint, workers: 3 });
  const attempts = async (): Promise<number> => {
    const runs = await readdir(join(root, 'runs'), { recursive: true });
    return runs.filter((path) => path.endsWith('attempt.json')).length;
  };

  before(async () => {
    root = await mkdtemp(join(tmpdir(), 'boq-experiment-'));
    checkpoint = join(root, 'models', 'tiny');
    await writeTinyCheckpoint(checkpoint);
  });
  after(() => rm(root, { recursive: true }));

  it('stops when asked to, at any stage, and goes on', async () => {
    for (const stop of ['collect', 'embed', 'train']) {
      const abort = new AbortController();
      try {
        await runExperiment(experiment, {
          ...options(),
          signal: abort.signal,
          onProgress: ({ stage }) => {
            if (stage.startsWith(stop)) abort.abort();
          },
        });
        expect.fail(`nothing stopped during ${stop}`);
      } catch (error) {
        expect(isBoqError(error, 'BOQ_ABORTED'), String(error)).to.equal(true);
      }
    }
  });

  it('goes from episodes to a report on every selector, control and reference', async () => {
    const stages = new Set<string>();
    const { runs, faults } = await runExperiment(experiment, {
      ...options(),
      onProgress: ({ stage }) => stages.add(stage.split(' ')[0]!),
    });
    expect(faults).to.deep.equal([]);
    const written = await writeReport({ paths: runs, out: join(root, 'report.html') });
    const [evaluation] = written.data.evaluations;
    expect(written.data.evaluations).to.have.length(1);
    expect(evaluation!.estimand).to.equal('unseen-seeds');
    const entries = new Map(evaluation!.entries.map((entry) => [entry.label, entry]));
    expect(entries.get('prompting')!.summary.episodes).to.equal(2);
    expect(entries.get('best-of-q')!.summary.pairs).to.equal(4);
    const roles = evaluation!.entries.map((entry) => entry.role);
    expect(roles.filter((role) => role === 'control')).to.have.length(2);
    expect(roles.filter((role) => role === 'reference')).to.have.length(2);
    expect(entries.get('best-of-q, monte-carlo')!.summary.pairs).to.equal(4);
    expect(entries.get('prompting of page-refit-filtered')!.summary.episodes).to.equal(2);
    const [tested] = confirm('small', await loadComparisons(runs), experiment.confirmation!);
    expect(tested).to.include({ pairs: 4, estimand: 'unseen-seeds' });
    // A constant Q ties everywhere, and the policy's first candidate is what prompting takes.
    const constant = evaluation!.entries.find((entry) => entry.label.includes('constant'))!;
    expect(constant.summary.difference).to.equal(0);
    expect(await readFile(written.path, 'utf8')).to.include('page-sampled');
  });

  it('finds everything done the second time', async () => {
    const before = await attempts();
    const result = await runExperiment(experiment, options());
    expect(result.runs).to.have.length(6);
    expect(await attempts()).to.equal(before);
  });

  it('trains on trees, or in a loop of its own, where it is declared so', async () => {
    const tasks = ['click-option'];
    const { training } = experiment;
    const config = { ...training.config, allowSingleOutcome: true };
    const draws = [{ seed: 1, seeds: { from: 0, to: 1 } }];
    const small: Experiment = {
      ...experiment,
      validation: { tasks, seeds: { from: 10_000, to: 10_000 } },
      ...{ questions: [], variants: [], references: [], controls: { shuffled: [], constant: [] } },
      training: {
        ...training,
        config,
        tasks,
        draws,
        tree: { width: 2, depth: 1, rollouts: 2, irreversible: true },
      },
    };
    await runExperiment(small, { ...options(), name: 'tree' });
    expect(await readdir(join(root, 'runs', 'tree-train', 'episodes'))).to.have.length(4);
    expect(await readdir(join(root, 'models', 'tree'))).to.include('model.safetensors');
    const { tree: _, ...plain } = small.training;
    const exploit = { runs: 1, selector: 'best-of-q' };
    const looped = { ...small, training: { ...plain, loop: { explore: { runs: 1 }, cycles: 1, exploit } } };
    await runExperiment(looped, { ...options(), name: 'looped' });
    expect(await readdir(join(root, 'loops', 'looped', 'runs'))).to.deep.equal(['g0-1', 'g1-1']);
    expect(await readdir(join(root, 'loops', 'looped', 'models', 'best'))).to.include('model.safetensors');
  });

  it('measures each model of folds on the fold that it was not trained on, and on no other', async () => {
    const tasks = ['click-option', 'click-button'];
    const folded: Experiment = {
      ...experiment,
      training: { ...experiment.training, tasks, folds: true, backup: 'max' },
      questions: [{ part: 'held-out', tasks, seeds: { from: 20_000, to: 20_000 } }],
      selectors: ['prompting', 'best-of-q'],
      ...{ variants: [], references: [] },
    };
    folded.training.config = { ...folded.training.config, allowSingleOutcome: true };
    const { runs } = await runExperiment(folded, { ...options(), name: 'folds' });
    const results = JSON.parse(await readFile(join(runs[0]!, 'results.json'), 'utf8')) as Results;
    const trained = new Map(results.models.map(({ id, trainingTasks }) => [id, trainingTasks]));
    expect([...trained.values()].map(String).sort()).to.deep.equal([
      'click-button',
      'click-button',
      'click-option',
      'click-option',
    ]);
    const [, ...rows] = (await readFile(join(runs[0]!, 'results.csv'), 'utf8')).trim().split('\n');
    const played = rows.map((row) => row.split(','));
    const asked = played.filter(([selector]) => selector === 'best-of-q');
    expect(played).to.have.length(2 + 4);
    expect(asked).to.have.length(4);
    for (const cells of asked) {
      const seen = [...trained].find(([id]) => cells.includes(id))![1];
      expect(cells.some((cell) => seen.includes(cell))).to.equal(false);
    }
    const loop = { explore: { runs: 1 }, cycles: 1, exploit: { runs: 1, selector: 'best-of-q' } };
    for (const wrong of [
      { ...folded, training: { ...folded.training, loop } },
      { ...folded, references: [{ policy: 'page', refit: 'filtered' as const }] },
    ]) {
      const refused = await runExperiment(wrong, { ...options(), name: 'wrong' }).catch((error) => error);
      expect(isBoqError(refused, 'BOQ_USAGE'), String(refused)).to.equal(true);
    }
    const dataOf = async (folder: string): Promise<string[]> => {
      const config = JSON.parse(await readFile(join(root, folder, 'config.json'), 'utf8')) as ModelConfig;
      return config.data.map(({ path }) => path);
    };
    const learnedFrom = await dataOf('models/folds-1-fold-1');
    expect(learnedFrom.some((path) => path.includes('labels-max'))).to.equal(true);
    expect(await dataOf('runs/folds-shuffled-1-fold-1')).to.deep.equal(learnedFrom);
    await using set = new ModelSet({ embedder: checkpoint });
    const path = join(root, 'models', 'folds-1-fold-1');
    const gone = join(root, 'runs', 'folds-train-1-fold-2');
    await rename(gone, `${gone}-moved`);
    const models = [{ ...(await set.open(path)), control: null }];
    const { policy, benchmark, training } = folded;
    const seeds = { from: 20_000, to: 20_000 };
    const unknown = await evaluate({
      ...{ policy, benchmark, seeds, models, heldOut: true, out: join(root, 'runs', 'unknown') },
      ...{ tasks: training.tasks, selectors: ['prompting', 'best-of-q'] },
    }).catch((error) => error);
    expect(isBoqError(unknown, 'BOQ_USAGE'), String(unknown)).to.equal(true);
    expect(String(unknown)).to.include(gone);
    await rename(`${gone}-moved`, gone);
    const written = await writeReport({ paths: runs, out: join(root, 'folds.html') });
    const [evaluation] = written.data.evaluations;
    expect(evaluation!.estimand).to.equal('unseen-tasks');
    const constant = evaluation!.entries.find((entry) => entry.label.includes('constant'))!;
    expect(constant.summary.pairs).to.equal(2);
    const shuffled = evaluation!.entries.find((entry) => entry.label.includes('shuffled'))!;
    expect(shuffled.summary.pairs).to.equal(4);
  });
});
