import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import {
  createMethod,
  isMarginOpen,
  methodWithMargin,
  parseMethodSpec,
} from '../../ts/agent/methods/registry.js';
import { miniwobSets } from '../../ts/evaluation/benchmarks/miniwob-sets.js';
import { holmAdjust } from '../../ts/evaluation/statistics.js';
import { findStudy, studyNames } from '../../ts/evaluation/studies/index.js';
import { confirm } from '../../ts/report/confirmation.js';
import { loadComparisons } from '../../ts/report/load.js';
import { confirmationTable } from '../../ts/report/terminal.js';
import { type EpisodeSpec, writeResults, writeRun } from '../support/run-folders.js';

const cells = ['alpha', 'beta'].flatMap((task) => [20_000, 20_001].map((seed) => ({ task, seed })));

function episodes(selector: string, wins: number[], generation = 'none'): EpisodeSpec[] {
  return cells.map((cell, index) => ({ ...cell, selector, generation, success: wins.includes(index) }));
}

describe('a confirmation', () => {
  let folder: string;
  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'boq-confirmation-'));
    await writeRun(join(folder, 'study-seeds'), 'evaluate', [
      ...episodes('prompting', [0]),
      ...episodes('best-of-q', [0, 1, 2, 3], 'g'),
    ]);
    await writeResults(join(folder, 'study-seeds'), {
      models: [{ path: 'model', id: 'g', trainingTasks: ['alpha', 'beta'], control: null }],
    });
  });
  after(() => rm(folder, { recursive: true }));

  it('tests what was declared, and corrects it together', async () => {
    const comparisons = await loadComparisons([join(folder, 'study-seeds')]);
    const declared = [
      { part: 'seeds', label: 'best-of-q', against: 'prompting' },
      { part: 'seeds', label: 'prompting', against: 'prompting' },
    ];
    const tested = confirm('study', comparisons, declared);
    expect(tested[0]).to.include({ pairs: 4, difference: 0.75 });
    expect(tested[1]).to.include({ pairs: 4, difference: 0, pValue: 1 });
    expect(tested.map(({ adjusted }) => adjusted)).to.deep.equal(
      holmAdjust(tested.map(({ pValue }) => pValue)),
    );
    expect(tested[0]!.adjusted).to.be.greaterThan(tested[0]!.pValue);
    expect(confirmationTable(tested)).to.include('best-of-q − prompting').and.include('+75.0');
  });

  it('says what is missing', async () => {
    const comparisons = await loadComparisons([join(folder, 'study-seeds')]);
    const one = { part: 'seeds', label: 'best-of-k', against: 'prompting' };
    expect(() => confirm('study', comparisons, [one])).to.throw('best-of-k');
    expect(() => confirm('study', comparisons, [{ ...one, part: 'tasks' }])).to.throw('study-tasks');
  });
});

describe('declared studies', () => {
  const familyOf = (task: string): string =>
    families.find((family) => task === family || task.startsWith(`${family}-`)) ?? task;
  const families = [
    ...[
      'book-flight',
      'choose-date',
      'click-button',
      'click-checkboxes',
      'click-collapsible',
      'click-dialog',
    ],
    ...['click-menu', 'click-pie', 'click-tab', 'click-test', 'email-inbox', 'enter-text', 'focus-text'],
    ...[
      'form-sequence',
      'login-user',
      'multi',
      'read-table',
      'scroll-text',
      'social-media',
      'use-autocomplete',
    ],
  ];

  it('train on at least 60 tasks and meet at least 30 others, siblings on one side', () => {
    const train = miniwobSets['@loop-train']!;
    const unseen = miniwobSets['@loop-unseen']!;
    expect(train.length).to.be.at.least(60);
    expect(unseen.length).to.be.at.least(30);
    const folds = [miniwobSets['@loop-text']!, miniwobSets['@loop-figures']!, unseen];
    expect(folds.slice(0, 2).flat().sort()).to.deep.equal(train);
    for (const fold of folds) {
      expect(fold.length).to.be.at.least(30);
      const others = new Set(folds.filter((other) => other !== fold).flatMap((other) => other.map(familyOf)));
      expect(fold.filter((task) => others.has(familyOf(task)))).to.deep.equal([]);
    }
  });

  for (const name of studyNames) {
    it(`${name}: seeds apart, methods known, comparisons among what is measured`, () => {
      const study = findStudy(name);
      const specs = [...study.selectors, ...(study.variants ?? []).flatMap(({ selectors }) => selectors)];
      for (const text of specs) {
        const spec = parseMethodSpec(text);
        if (isMarginOpen(spec)) methodWithMargin(spec, 0);
        else createMethod(spec);
      }
      const { draws, loop } = study.training;
      const runs = loop ? loop.explore.runs + loop.cycles * loop.exploit.runs : 1;
      const ranges = draws.map(
        ({ seeds: { from, to } }) => [from, from + runs * (to - from + 1) - 1] as const,
      );
      for (const [from, to] of ranges) {
        expect(to).to.be.below(10_000);
        const others = ranges.filter(([other]) => other !== from);
        expect(others.some(([first, last]) => first <= to && from <= last)).to.equal(false);
      }
      const { seeds } = study.validation;
      expect(seeds.from >= 10_000 && seeds.to < 20_000).to.equal(true);
      for (const question of study.questions)
        expect(question.seeds.from > seeds.to && question.seeds.to < 30_000).to.equal(true);
      const labels = new Set([
        ...study.selectors,
        ...(study.variants ?? []).flatMap((one) => one.selectors.map((text) => `${text}, ${one.name}`)),
      ]);
      for (const { part, label, against } of study.confirmation ?? []) {
        expect(study.questions.map((question) => question.part)).to.include(part);
        expect([...labels])
          .to.include(label)
          .and.include(against);
      }
    });
  }

  it('explore on validation seeds, unless they confirm something', () => {
    for (const name of studyNames) {
      const { questions, confirmation } = findStudy(name);
      const isFinal = confirmation !== undefined || name.startsWith('gain-');
      for (const { seeds } of questions) expect(seeds.from >= 20_000, name).to.equal(isFinal);
    }
  });
});
