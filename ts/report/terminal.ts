/** The comparison as a table for the terminal: the same figures as on the page. */
import Table from 'cli-table3';
import type { CurvePoint } from '../evaluation/loop/curve.js';
import type { Confirmed } from './confirmation.js';
import type { Evaluation } from './data.js';
import { decimal, integer, interval, percent, points } from './format.js';

/** @param options.color switch ANSI styles off where the output is not a terminal */
export function comparisonTable(evaluation: Evaluation, options: { color: boolean }): string {
  const { tasks, seeds, entries, baseline } = evaluation;
  const clustered = evaluation.estimand === 'unseen-tasks';
  const title = clustered ? `${tasks.length} unseen tasks` : `Unseen seeds of ${tasks.length} training tasks`;
  const spreads = entries.some(({ summary }) => summary.repeatSpread !== null);
  const table = new Table({
    head: [
      'selector',
      'success',
      '± SE',
      'steps',
      'episodes',
      'difference',
      clustered ? '95 % (other tasks)' : '95 % (other seeds)',
      clustered ? '95 % (other seeds)' : '95 % (other tasks)',
      ...(spreads ? ['spread over repeats'] : []),
    ],
    colAligns: ['left', ...Array<'right'>(8).fill('right')],
    style: options.color ? { head: ['bold'], border: ['grey'] } : { head: [], border: [] },
  });
  for (const { label, role, summary } of entries) {
    const other = clustered ? summary.intervals?.stratified : summary.intervals?.clustered;
    table.push([
      role === 'control' ? `${label} [control]` : label,
      percent(summary.successRate),
      percent(summary.standardErrorEpisodes),
      decimal(summary.meanStepsOnSuccess),
      integer(summary.episodes),
      points(summary.difference),
      interval(summary.interval),
      interval(other ?? null),
      ...(spreads ? [summary.repeatSpread?.toFixed(2) ?? ''] : []),
    ]);
  }
  return [
    `${title}, seeds ${seeds.from} to ${seeds.to}. Differences to ${baseline} in percentage points, paired by episode.`,
    table.toString(),
  ].join('\n');
}

/** Declared comparisons and what came of them. */
export function confirmationTable(tested: readonly Confirmed[]): string {
  const table = new Table({
    head: ['part', 'comparison', 'pairs', 'difference', '95 %', 'p', 'p after Holm'],
    colAligns: ['left', 'left', 'right', 'right', 'right', 'right', 'right'],
    style: { head: [], border: [] },
  });
  for (const one of tested) {
    table.push([
      one.part,
      `${one.label} − ${one.against}`,
      integer(one.pairs),
      points(one.difference),
      interval(one.interval),
      one.pValue.toFixed(4),
      one.adjusted.toFixed(4),
    ]);
  }
  return table.toString();
}

/** A loop's learning curve, one line a generation. */
export function curveTable(points: readonly CurvePoint[]): string {
  const table = new Table({
    head: ['', 'training episodes', 'success on validation seeds', '± SE', 'margin'],
    colAligns: ['left', 'right', 'right', 'right', 'right'],
    style: { head: [], border: [] },
  });
  for (const { generation, trained, successRate, standardError, margin } of points) {
    table.push([
      generation < 0 ? 'policy alone' : generation === 0 ? 'g0, after exploring' : `g${generation}`,
      integer(trained),
      percent(successRate),
      percent(standardError),
      margin === null ? '' : String(margin),
    ]);
  }
  return table.toString();
}
