import { expect } from 'chai';
import { parseHTML } from 'linkedom';
import type { ReportData } from '../../ts/report/data.js';
import { decimal, integer, interval, percent, points, significant } from '../../ts/report/format.js';
import { renderReport } from '../../ts/report/page.js';
import { differencePlot, taskPlot } from '../../ts/report/plots.js';
import { evaluation, example, reportData } from '../support/report-data.js';

function rendered(data: ReportData): Document {
  return parseHTML(renderReport(data)).document;
}

function text(parent: Document | Element, selector: string): string[] {
  return [...parent.querySelectorAll(selector)].map((element) => element.textContent ?? '');
}

describe('report page', () => {
  it('asks nothing of the network and runs nothing', () => {
    const html = renderReport(reportData());
    const { document } = parseHTML(html);
    expect(document.querySelectorAll('script, link, iframe, object, embed')).to.have.length(0);
    const urls = [...document.querySelectorAll('[src], [href]')].map(
      (element) => element.getAttribute('src') ?? element.getAttribute('href') ?? '',
    );
    expect(urls.filter((url) => !url.startsWith('#') && !url.startsWith('data:image/'))).to.deep.equal([]);
    expect(html).to.not.match(/url\(|@import|javascript:|\son\w+=/);
    expect(document.querySelector('meta[http-equiv]')!.getAttribute('content')).to.include(
      "default-src 'none'",
    );
  });

  it('shows the measured rates and differences of every entry, one row each', () => {
    const data = reportData();
    const section = rendered(data).getElementById('evaluation-0')!;
    const rows = [...section.querySelector('table')!.querySelectorAll('tbody tr')];
    expect(rows).to.have.length(data.evaluations[0]!.entries.length);
    data.evaluations[0]!.entries.forEach((entry, index) => {
      const cells = text(rows[index]!, 'th, td');
      expect(cells[0]).to.equal(entry.label + entry.role);
      expect(cells[1]).to.equal(percent(entry.summary.successRate));
      expect(cells[6]).to.equal(points(entry.summary.difference));
      expect(cells[7]).to.equal(interval(entry.summary.interval));
    });
  });

  it('keeps hostile page text as text', () => {
    const hostile = '<img src=x onerror=alert(1)></style><script>alert(2)</script>';
    const data = reportData();
    data.title = hostile;
    data.examples[0]!.record.instruction = hostile;
    data.examples[0]!.steps[0]!.candidates[0]!.thought = hostile;
    data.evaluations[0]!.byTask[0]!.task = hostile;
    data.provenance[0]!.facts = [[hostile, hostile]];
    const document = rendered(data);
    expect(document.querySelectorAll('script')).to.have.length(0);
    expect(document.querySelectorAll('img')).to.have.length(1);
    expect(text(document, '.instruction')).to.deep.equal([hostile]);
  });

  it('shows candidates with Q, marks the executed one and the override, and places the click', () => {
    const document = rendered(reportData());
    const items = [...document.querySelectorAll('.candidates li')];
    expect(items.map((item) => item.classList.contains('chosen'))).to.deep.equal([false, true]);
    expect(text(items[1]!, '.number')).to.deep.equal(['0.800']);
    expect(items[1]!.querySelector('.bar i')!.getAttribute('style')).to.include('100%');
    expect(text(document, '.step h3')[0]).to.include('first candidate overridden');
    expect(document.querySelector('.point')!.getAttribute('style')).to.match(/left: ?25%; ?top: ?50%/);
    expect(text(document, '.example')[0]).to.include('2 later steps are left out');
  });

  it('draws an episode without scores and without a screenshot', () => {
    const data = reportData();
    const plain = example();
    plain.steps[0]!.scores = null;
    plain.steps[0]!.image = null;
    plain.baseline = null;
    data.examples = [plain];
    const document = rendered(data);
    expect(document.querySelectorAll('.bar')).to.have.length(0);
    expect(text(document, '.noshot')).to.have.length(1);
  });

  it('stays a page when there is only a training to show', () => {
    const data = { ...reportData(), evaluations: [], examples: [], collections: [], loops: [] };
    const document = rendered(data);
    expect(text(document, 'section h2')).to.deep.equal(['Training model', 'Where the figures come from']);
  });
});

describe('plots', () => {
  it('draws a dot and both intervals for every compared entry', () => {
    const { document } = parseHTML(`<body>${differencePlot(evaluation())}</body>`);
    expect(document.querySelectorAll('[aria-label="dot"] path, [aria-label="dot"] circle')).to.have.length(4);
    expect(document.querySelectorAll('[aria-label="rule"] line')).to.have.length(1 + 4 + 4);
    expect(document.querySelector('svg')!.getAttribute('role')).to.equal('img');
  });

  it('orders tasks by gain and colours losses apart', () => {
    const data = evaluation();
    data.byTask = [
      { task: 'worse', rates: [0.8, 0, 0, 0.2, 0] },
      { task: 'better', rates: [0.2, 0, 0, 0.9, 0] },
      { task: 'absent', rates: [0.2, 0, 0, null, 0] },
    ];
    const svg = taskPlot(data, 3);
    expect(svg.indexOf('better')).to.be.lessThan(svg.indexOf('worse'));
    expect(svg).to.not.include('absent');
    expect(svg).to.include('var(--loss)').and.to.include('var(--gain)');
  });
});

describe('words and numbers', () => {
  it('prints rates, points and intervals with their sign', () => {
    expect(percent(0.72666)).to.equal('72.7 %');
    expect(percent(null)).to.equal('–');
    expect(points(0.1034)).to.equal('+10.3');
    expect(points(-0.04)).to.equal('−4.0');
    expect(points(-0.0001)).to.equal('0.0');
    expect(interval([-0.01, 0.2])).to.equal('[−1.0, +20.0]');
    expect(decimal(Number.NaN)).to.equal('–');
    expect(integer(1234567)).to.equal('1,234,567');
    expect(significant(0.00001234)).to.equal('1.23e-5');
    expect(significant(12.3456)).to.equal('12.3');
  });
});
