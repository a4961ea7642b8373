import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { embedRun } from '../../../ts/learning/embed-run.js';
import { hyperParameters, parseHyperParameter, trainConfig } from '../../../ts/learning/hyper-parameters.js';
import { describePlan, type TrainPlan, train } from '../../../ts/learning/train.js';
import { findEmbeddings, newestEmbeddedRun } from '../../../ts/learning/training-data.js';
import type { NativeTrainRequest, NativeTrainSummary } from '../../../ts/native/surface.js';
import { candidate, FakeEmbedder, FakeRun, fakeStep } from '../../support/fake-run.js';
import { rejection } from '../../support/rejection.js';

const step = () => [fakeStep(0, [candidate('a'), candidate('b')], 0)];

/** Writes the config.json of every model that native training would. */
async function fakeTraining(request: NativeTrainRequest): Promise<NativeTrainSummary> {
  const model = {
    version: 1,
    kind: 'iql',
    width: 8,
    heads: 1,
    fingerprint: 'fake0000fake0000',
    profile: { template: 'boq-1' },
    config: { ...request.config, tau: 0.7 },
    parameters: { q: 12, v: 8 },
    data: [],
    steps: 5,
    metrics: { 'loss/q': 0.25 },
  };
  const names = Array.from({ length: request.seeds ?? 1 }, (_, i) => (request.seeds ? `seed-${i}` : ''));
  for (const name of names) {
    await mkdir(join(request.out, name), { recursive: true });
    await writeFile(join(request.out, name, 'config.json'), JSON.stringify(model));
  }
  const one = { steps: 5, stopped: false, seconds: 1, metrics: model.metrics, parameters: model.parameters };
  return { ...one, models: names.map((name) => ({ name, ...one })) };
}

describe('the training stage', () => {
  let base: string;
  beforeEach(async () => {
    base = await mkdtemp(join(tmpdir(), 'boq-train-'));
  });
  afterEach(() => rm(base, { recursive: true }));

  const embedded = (name: string, fill: (run: FakeRun) => void, embedder = new FakeEmbedder()) => {
    const run = new FakeRun(join(base, 'runs', name));
    fill(run);
    return embedRun(run, embedder);
  };

  it('joins runs, says which tasks never succeed, and writes the model card', async () => {
    const a = await embedded('a', (run) =>
      run.add('easy', 1, 'success', step()).add('hard', 1, 'failure', step()),
    );
    await embedded('b', (run) => run.add('hard', 2, 'step-limit', step()).add('easy', 2, 'failure', step()));
    const out = join(base, 'model');
    let plan: TrainPlan | undefined;
    const requests: NativeTrainRequest[] = [];
    const result = await train(
      {
        data: [a.folder, join(base, 'runs', 'b')],
        out,
        config: { batchSize: 7 },
        onPlan: (each) => {
          plan = each;
        },
      },
      (request) => {
        requests.push(request);
        return fakeTraining(request);
      },
    );
    expect(plan?.data).to.include({ episodes: 4, transitions: 4, candidates: 8, successRate: 0.25 });
    expect(plan?.withoutSuccess).to.deep.equal(['hard']);
    expect(describePlan(plan as TrainPlan).join('\n'))
      .to.contain('No success in hard')
      .and.to.contain('batchSize 7');
    expect(requests[0]?.config).to.deep.equal({ preset: 'default', batchSize: 7 });
    expect(requests[0]?.data).to.have.length(2);
    expect(result.model.config.tau).to.equal(0.7);
    const card = await readFile(join(out, 'README.md'), 'utf8');
    expect(card)
      .to.contain('| easy | 2 | 50.0 % |')
      .and.to.contain('| hard | 2 | 0.0 % |')
      .and.to.contain('| tau | 0.7 |');
  });

  it('plans and trains on outcomes judged again', async () => {
    const a = await embedded('a', (run) =>
      run.add('easy', 1, 'success', step()).add('hard', 1, 'answered', step()),
    );
    const lines = (await readFile(join(a.folder, 'episodes.jsonl'), 'utf8')).trim().split('\n');
    const labels = join(base, 'labels.jsonl');
    const judged = lines.map((line, i) => JSON.stringify({ key: JSON.parse(line).key, success: i === 1 }));
    await writeFile(labels, `${judged.join('\n')}\n`);
    const requests: NativeTrainRequest[] = [];
    const { plan } = await train({ data: [a.folder], out: join(base, 'model'), labels }, (request) => {
      requests.push(request);
      return fakeTraining(request);
    });
    expect(plan.withoutSuccess).to.deep.equal(['easy']);
    expect(plan.data.successRate).to.equal(0.5);
    expect(requests[0]?.labels).to.equal(labels);
    for (const wrong of ['success', '{"key": 1, "success": true}', '{"key": {}, "success": "yes"}']) {
      await writeFile(labels, `${judged[0]}\n${wrong}\n`);
      const error = await rejection(train({ data: [a.folder], out: base, labels }, fakeTraining));
      expect(error.code).to.equal('BOQ_DATA_INVALID');
      expect(error.message).to.contain(`${labels}:2`);
    }
    const missing = await rejection(train({ data: [a.folder], out: base, labels: 'none' }, fakeTraining));
    expect(missing.code).to.equal('BOQ_FILE_NOT_FOUND');
  });

  it('learns besides from backed-up values, and not where outcomes are judged again', async () => {
    const a = await embedded('a', (run) =>
      run.add('easy', 1, 'success', step()).add('easy', 2, 'answered', step()),
    );
    const requests: NativeTrainRequest[] = [];
    const options = { data: [a.folder], out: join(base, 'model'), backup: 'max' } as const;
    const { plan } = await train(options, (request) => {
      requests.push(request);
      return fakeTraining(request);
    });
    expect(requests[0]?.data).to.deep.equal([a.folder, join(a.folder, 'labels-max-0.99')]);
    expect(plan.data.episodes).to.equal(2);
    expect(plan.backedUp).to.equal(1);
    expect(describePlan(plan).join('\n')).to.contain('a backed-up value for each of 1 actions');
    const both = await rejection(train({ ...options, labels: 'any' }, fakeTraining));
    expect(both.code).to.equal('BOQ_USAGE');
    const swept = await rejection(train({ ...options, sweep: { gamma: [0.9, 0.99] } }, fakeTraining));
    expect(swept.code).to.equal('BOQ_USAGE');
  });

  it('trains several models, each with its card', async () => {
    const a = await embedded('a', (run) =>
      run.add('easy', 1, 'success', step()).add('easy', 2, 'failure', step()),
    );
    const requests: NativeTrainRequest[] = [];
    const sweep = { tau: [0.6, 0.7], hidden: [[8], [16, 8]] };
    const { plan, models } = await train(
      { data: [a.folder], out: join(base, 'models'), seeds: 3, sweep },
      (request) => {
        requests.push(request);
        return fakeTraining(request);
      },
    );
    expect(requests[0]).to.deep.include({ seeds: 3, sweep });
    expect(plan.models).to.equal(12);
    expect(describePlan(plan).join('\n')).to.contain('12 models in');
    expect(models.map(({ summary }) => summary.name)).to.deep.equal(['seed-0', 'seed-1', 'seed-2']);
    for (const { out } of models)
      expect(await readFile(join(out, 'README.md'), 'utf8')).to.contain('| tau |');
  });

  it('refuses runs of two embedders, naming both', async () => {
    const a = await embedded('a', (run) => run.add('t', 1, 'success', step()));
    const other = Object.assign(new FakeEmbedder(), { fingerprint: 'other' });
    const b = await embedded('b', (run) => run.add('t', 1, 'success', step()), other);
    const error = await rejection(train({ data: [a.folder, b.folder], out: base }, fakeTraining));
    expect(error.code).to.equal('BOQ_FINGERPRINT_MISMATCH');
    expect(error.message).to.contain('fake0000fake0000').and.to.contain('other');
  });

  it('refuses data without any success, and runs that are not embedded', async () => {
    const a = await embedded('a', (run) => run.add('t', 1, 'failure', step()));
    const hopeless = await rejection(train({ data: [a.folder], out: base }, fakeTraining));
    expect(hopeless.code).to.equal('BOQ_DATA_EMPTY');
    expect(hopeless.message).to.contain('none of the 1 episodes');
    const missing = await rejection(findEmbeddings(join(base, 'runs', 'none')));
    expect(missing.message).to.contain('node scripts/embed.js');
    await embedded(
      'a',
      (run) => run.add('t', 1, 'failure', step()),
      Object.assign(new FakeEmbedder(), { fingerprint: 'x' }),
    );
    expect((await rejection(findEmbeddings(join(base, 'runs', 'a')))).code).to.equal('BOQ_USAGE');
  });

  it('finds the run that was embedded last', async () => {
    expect(await newestEmbeddedRun(join(base, 'runs'))).to.equal(null);
    await embedded('b', (run) => run.add('t', 1, 'success', step()));
    const later = await embedded('a', (run) => run.add('t', 1, 'success', step()));
    expect(await newestEmbeddedRun(join(base, 'runs'))).to.equal(later.folder);
  });

  it('reads hyper-parameters strictly', () => {
    const parse = (name: string, text: string) => {
      const parameter = hyperParameters.find((each) => each.name === name);
      if (parameter === undefined) throw new Error(name);
      return parseHyperParameter(parameter, text);
    };
    expect(parse('tau', '0.7')).to.equal(0.7);
    expect(parse('hidden', '64,32')).to.deep.equal([64, 32]);
    expect(parse('standardise', 'false')).to.equal(false);
    for (const [name, text] of [
      ['tau', '1.5'],
      ['tau', ''],
      ['batchSize', '1.5'],
      ['hidden', '64,'],
      ['standardise', 'yes'],
      ['optimizer', 'sgd'],
    ] as const) {
      expect(() => parse(name, text), `${name} ${text}`)
        .to.throw(name)
        .with.property('code', 'BOQ_USAGE');
    }
    expect(() => trainConfig('default', { taw: 0.7 }))
      .to.throw('taw')
      .with.property('code', 'BOQ_CONFIG_INVALID');
  });
});
