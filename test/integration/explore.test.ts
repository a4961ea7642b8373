/** Tree exploration in a real browser, down to a training on both kinds of data. */
import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { bounds, deviate, readCourses, scoreCourses } from '../../ts/evaluation/headroom.js';
import { ModelSet } from '../../ts/evaluation/models.js';
import { explore } from '../../ts/evaluation/tree/explore.js';
import { embedRun } from '../../ts/learning/embed-run.js';
import { Embedder } from '../../ts/learning/embedder.js';
import { writeLabelFolder } from '../../ts/learning/label-folder.js';
import { openRunSource } from '../../ts/learning/run-source.js';
import { writeTinyCheckpoint } from '../../ts/learning/tiny-checkpoint.js';
import { train } from '../../ts/learning/train.js';
import { openRun } from '../../ts/store/run.js';

describe('exploring', () => {
  let root: string;
  const at = (name: string): string => join(root, name);
  const options = () => ({
    benchmark: 'miniwob',
    tasks: ['click-option', 'click-tab-2'],
    seeds: { from: 0, to: 1 },
    out: at('tree'),
    workers: 3,
    shape: { width: 2, depth: 2, rollouts: 4, irreversible: true },
  });

  before(async () => {
    root = await mkdtemp(join(tmpdir(), 'boq-explore-'));
    await writeTinyCheckpoint(at('tiny'));
  });
  after(() => rm(root, { recursive: true }));

  it('comes back to the states it branches from, and finds everything done the second time', async () => {
    const first = await explore(options());
    expect(first.faults).to.deep.equal([]);
    expect(first.instances).to.equal(4);
    expect(first.episodes).to.be.greaterThan(8);
    expect(first.lost).to.equal(0);
    const attempts = (await readdir(at('tree/attempts'))).length;
    expect(await explore(options())).to.deep.equal(first);
    expect(await readdir(at('tree/attempts'))).to.have.length(attempts);
  });

  it('gives training several actions a state, and labels for them', async () => {
    await using embedder = await Embedder.load({ path: at('tiny'), device: 'cpu' });
    const { folder } = await embedRun(await openRunSource(at('tree')), embedder);
    const { forks, actions } = await writeLabelFolder(folder, at('labels'), { backup: 'max', gamma: 0.99 });
    expect(forks).to.be.at.least(4);
    const { plan, summary, model } = await train({
      data: [folder],
      backup: 'max',
      out: at('model'),
      device: 'cpu',
      config: {
        steps: 20,
        projection: 8,
        hidden: [8],
        ranking: 0.1,
        validationFraction: 0,
        allowSingleOutcome: true,
      },
    });
    expect(summary.steps).to.equal(20);
    expect(plan.backedUp).to.equal(actions);
    expect(model.data.map(({ transitions }) => transitions)[1]).to.equal(actions);
  });

  it('shows what one other choice would have changed', async () => {
    const run = await openRun(at('tree'));
    const courses = await readCourses(run);
    expect(courses).to.have.length(4);
    const { policy, oracle } = bounds(courses);
    const wins = (rows: typeof policy): number => rows.filter(({ success }) => success).length;
    expect(wins(oracle)).to.be.at.least(wins(policy));
    await using models = new ModelSet({ embedder: at('tiny'), device: 'cpu' });
    const scores = await scoreCourses(run, courses, (await models.open(at('model'))).critic);
    const stay = deviate('never', courses, scores, () => 0);
    expect(stay.rows.map(({ success }) => success)).to.deep.equal(policy.map(({ success }) => success));
    expect(stay.overrides).to.equal(0);
    const always = deviate('second', courses, scores, () => 1);
    expect(always.overrides).to.equal(4);
  });
});
