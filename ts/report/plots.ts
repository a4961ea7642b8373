/**
 * Plots as SVG text, drawn on the server by Observable Plot in a linkedom document. Colours are CSS variables of the
 * page, so that one file reads in light and dark; outcome and role are told by shape and label too, never by colour
 * alone.
 */
import * as Plot from '@observablehq/plot';
import { parseHTML } from 'linkedom';
import { wilsonInterval } from '../evaluation/statistics.js';
import type { Collection, Evaluation, LearningLoop, Training } from './data.js';

const fontSize = '12px';
const width = 1040;

type PlotOptions = NonNullable<Parameters<typeof Plot.plot>[0]>;

function draw(label: string, description: string, options: PlotOptions): string {
  const { document } = parseHTML('<!doctype html><html><body></body></html>');
  const figure = Plot.plot({
    // Plot asks for a browser's Document and uses only createElement(NS), which linkedom has.
    document: document as unknown as Document,
    ariaLabel: label,
    ariaDescription: description,
    style: { fontSize, background: 'none' },
    marginBottom: 44,
    ...options,
  });
  figure.setAttribute('role', 'img');
  return figure.outerHTML;
}

/** Paired differences to the baseline in percentage points: dot, thick stratified and thin clustered interval. */
export function differencePlot(evaluation: Evaluation): string {
  const rows = evaluation.entries
    .filter((entry) => entry.summary.difference !== null && entry.summary.intervals !== null)
    .map(({ label, role, summary }) => ({
      label,
      role,
      value: 100 * summary.difference!,
      stratified: summary.intervals!.stratified.map((end) => 100 * end),
      clustered: summary.intervals!.clustered.map((end) => 100 * end),
    }));
  const leftMargin = Math.min(300, 24 + 7 * Math.max(0, ...rows.map((row) => row.label.length)));
  return draw(
    'Difference in success to the baseline',
    `Percentage points with 95 % intervals, against ${evaluation.baseline}.`,
    {
      width,
      height: 72 + 34 * rows.length,
      marginLeft: leftMargin,
      x: { label: 'percentage points →', grid: true, nice: true },
      y: { label: null, domain: rows.map((row) => row.label), tickSize: 0 },
      marks: [
        Plot.ruleX([0], { strokeDasharray: '3 3', strokeOpacity: 0.7 }),
        Plot.ruleY(rows, {
          y: 'label',
          x1: (row) => row.clustered[0],
          x2: (row) => row.clustered[1],
          stroke: (row) => roleColor(row.role),
          strokeWidth: 1.5,
        }),
        Plot.ruleY(rows, {
          y: 'label',
          x1: (row) => row.stratified[0],
          x2: (row) => row.stratified[1],
          stroke: (row) => roleColor(row.role),
          strokeWidth: 6,
          strokeOpacity: 0.45,
        }),
        Plot.dot(rows, {
          y: 'label',
          x: 'value',
          r: 5,
          fill: (row) => roleColor(row.role),
          stroke: 'var(--surface)',
          symbol: (row: { role: string }) => (row.role === 'control' ? 'square' : 'circle'),
        }),
      ],
    },
  );
}

/** Success of the baseline and of one entry, task by task, ordered by the gain. */
export function taskPlot(evaluation: Evaluation, entry: number): string {
  const baseline = evaluation.entries.findIndex((other) => other.label === evaluation.baseline);
  const rows = evaluation.byTask
    .map(({ task, rates }) => ({ task, from: rates[baseline] ?? null, to: rates[entry] ?? null }))
    .filter((row): row is { task: string; from: number; to: number } => row.from !== null && row.to !== null)
    .map((row) => ({ task: row.task, from: 100 * row.from, to: 100 * row.to, gain: row.to - row.from }))
    .sort((a, b) => b.gain - a.gain || (a.task < b.task ? -1 : 1));
  const label = evaluation.entries[entry]!.label;
  const leftMargin = 24 + 7 * Math.max(0, ...rows.map((row) => row.task.length));
  return draw(
    'Success by task',
    `Success in percent by task: open circle ${evaluation.baseline}, filled circle ${label}; largest gain first.`,
    {
      width,
      height: 68 + 18 * rows.length,
      marginLeft: leftMargin,
      x: { domain: [0, 100], label: 'success, % →', grid: true },
      y: { label: null, domain: rows.map((row) => row.task), tickSize: 0 },
      marks: [
        Plot.link(rows, {
          y: 'task',
          x1: 'from',
          x2: 'to',
          stroke: (row) => (row.gain < 0 ? 'var(--loss)' : 'var(--gain)'),
          strokeWidth: 3,
          strokeOpacity: 0.6,
        }),
        Plot.dot(rows, { y: 'task', x: 'from', r: 4, stroke: 'currentColor', fill: 'var(--surface)' }),
        Plot.dot(rows, {
          y: 'task',
          x: 'to',
          r: 4,
          fill: (row) => (row.gain < 0 ? 'var(--loss)' : 'var(--gain)'),
        }),
      ],
    },
  );
}

/** Success of the collected episodes, task by task, with Wilson's interval. */
export function collectionPlot(collection: Collection): string {
  const rows = collection.byTask
    .map(({ task, episodes, successes }) => {
      const [low, high] = wilsonInterval(successes, episodes);
      return { task, rate: (100 * successes) / episodes, low: 100 * low, high: 100 * high };
    })
    .sort((a, b) => b.rate - a.rate || (a.task < b.task ? -1 : 1));
  const leftMargin = 24 + 7 * Math.max(0, ...rows.map((row) => row.task.length));
  return draw('Success of the training episodes by task', 'Percent with 95 % Wilson intervals.', {
    width,
    height: 68 + 18 * rows.length,
    marginLeft: leftMargin,
    x: { domain: [0, 100], label: 'success, % →', grid: true },
    y: { label: null, domain: rows.map((row) => row.task), tickSize: 0 },
    marks: [
      Plot.barX(rows, { y: 'task', x: 'rate', fill: 'var(--neutral)', insetTop: 3, insetBottom: 3 }),
      Plot.ruleY(rows, { y: 'task', x1: 'low', x2: 'high', strokeWidth: 1.5, stroke: 'currentColor' }),
    ],
  });
}

/** Success on validation seeds against training episodes, with Wilson's interval; the policy alone as a line. */
export function learningPlot({ points }: LearningLoop): string {
  const rows = points
    .filter(({ generation }) => generation >= 0)
    .map(({ generation, trained, successRate, episodes }) => {
      const [low, high] = wilsonInterval(Math.round(successRate * episodes), episodes);
      return { generation, trained, rate: 100 * successRate, low: 100 * low, high: 100 * high };
    });
  const policy = points.find(({ generation }) => generation < 0);
  return draw(
    'Learning curve',
    'Success in percent on validation seeds against the number of training episodes, with 95 % Wilson intervals. ' +
      'Dashed: the policy alone.',
    {
      width,
      height: 320,
      marginLeft: 56,
      x: { label: 'training episodes →', zero: true, nice: true },
      y: { label: 'success, %', grid: true, nice: true },
      marks: [
        ...(policy ? [Plot.ruleY([100 * policy.successRate], { strokeDasharray: '4 4' })] : []),
        Plot.ruleX(rows, { x: 'trained', y1: 'low', y2: 'high', stroke: 'var(--method)', strokeWidth: 1.5 }),
        Plot.lineY(rows, { x: 'trained', y: 'rate', stroke: 'var(--method)', strokeWidth: 2 }),
        Plot.dot(rows, { x: 'trained', y: 'rate', r: 4, fill: 'var(--method)', stroke: 'var(--surface)' }),
        Plot.text(rows, { x: 'trained', y: 'rate', text: (row) => `g${row.generation}`, dy: -12 }),
      ],
    },
  );
}

/** One small plot a metric. */
export function curvePlot(curve: Training['curves'][number]): string {
  return draw(curve.metric, `${curve.metric} over gradient steps.`, {
    width: 340,
    height: 196,
    marginLeft: 56,
    x: { label: 'gradient step →', ticks: 4, tickFormat: 's' },
    y: { label: null, grid: true, ticks: 4, nice: true },
    marks: [Plot.lineY(curve.points, { x: 'step', y: 'value', stroke: 'var(--accent)', strokeWidth: 1.6 })],
  });
}

function roleColor(role: string): string {
  return `var(--${role})`;
}
