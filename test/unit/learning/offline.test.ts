import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { type OfflineReport, offlineTable, readOfflineReport } from '../../../ts/learning/offline.js';
import { rejection } from '../../support/rejection.js';

const figures = { auc: 0.75, brier: 0.2, calibrationError: 0.05, pairwiseAccuracy: null };
const picks = {
  decisions: 10,
  byIndex: [0.5, 0.3, 0.2],
  overrideRate: 0.5,
  agreementWithExecuted: 0.4,
  meanGainOverFirst: 0.1,
};
const report: OfflineReport = {
  transitions: 10,
  q: figures,
  v: { ...figures, auc: 0.7 },
  stepNumber: { ...figures, auc: 0.5 },
  task: { ...figures, auc: 0.65 },
  regressor: { ...figures, auc: 0.8, picks: { ...picks, overrideRate: 0.25 } },
  byStep: [],
  pairs: 0,
  revisitedStates: 0,
  rankAgreementAtRevisited: null,
  picks,
  spreadAgainstError: 0.3,
};

describe('what held-out episodes say', () => {
  it('stands in one table, beside simpler predictors', () => {
    const { head, rows, notes } = offlineTable(report);
    expect(rows.map(([name, auc]) => `${name} ${auc}`)).to.deep.equal([
      'Q 0.750',
      'V alone 0.700',
      'Monte-Carlo regressor 0.800',
      'number of the step alone 0.500',
      'task alone 0.650',
    ]);
    for (const row of rows) expect(row).to.have.length(head.length);
    expect(rows[0]?.at(-1)).to.equal('—');
    expect(notes.join('\n'))
      .to.contain('Q would pick candidates 1: 50 %, 2: 30 %, 3: 20 %; it leaves the first in 50 %')
      .and.to.contain('The regressor would pick')
      .and.to.contain('0.300');
    const without = offlineTable({ ...report, regressor: null, spreadAgainstError: null });
    expect(without.rows[2]).to.deep.equal(['Monte-Carlo regressor', '—', '—', '—', '—']);
    expect(without.notes).to.have.length(2);
  });
});

describe('the figures of a model', () => {
  let model: string;
  beforeEach(async () => {
    model = await mkdtemp(join(tmpdir(), 'boq-offline-'));
  });
  afterEach(() => rm(model, { recursive: true }));

  it('come from its folder', async () => {
    await writeFile(join(model, 'offline.json'), JSON.stringify(report));
    expect(await readOfflineReport(model)).to.deep.equal(report);
    await writeFile(join(model, 'offline.json'), '{');
    expect((await rejection(readOfflineReport(model))).code).to.equal('BOQ_FILE_CORRUPT');
    await rm(join(model, 'offline.json'));
    expect((await rejection(readOfflineReport(model))).code).to.equal('BOQ_FILE_NOT_FOUND');
  });
});
