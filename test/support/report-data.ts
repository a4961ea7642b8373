import { type EvaluationRow, summarizeSelectors } from '../../ts/evaluation/summary.js';
import type { Evaluation, Example, ReportData } from '../../ts/report/data.js';
import type { EpisodeRecord } from '../../ts/store/types.js';

/** Deterministic outcomes: selector s succeeds on task t, seed e where (e * 7 + t * 3) mod 10 < rate. */
export function evaluationRows(rates: Record<string, number>, tasks = 4, seeds = 20): EvaluationRow[] {
  return Object.entries(rates).flatMap(([selector, rate]) =>
    Array.from({ length: tasks * seeds }, (_, index) => {
      const task = index % tasks;
      const seed = Math.floor(index / tasks);
      const success = (seed * 7 + task * 3) % 10 < rate;
      return {
        selector,
        task: `task-${task}`,
        seed,
        repeat: 0,
        training: selector === 'prompting' ? '' : 'model',
        success,
        rawReward: Number(success),
        steps: 1 + (seed % 4),
      };
    }),
  );
}

export function evaluation(estimand: Evaluation['estimand'] = 'unseen-seeds'): Evaluation {
  const rows = evaluationRows({
    prompting: 6,
    random: 3,
    'best-of-q': 6,
    'best-of-q margin 0.1': 8,
    'constant Q': 6,
  });
  const summaries = summarizeSelectors(rows, { estimand, resamples: 500 });
  const tasks = [...new Set(rows.map((row) => row.task))];
  const labels = Object.keys(summaries);
  const roles = ['baseline', 'reference', 'method', 'method', 'control'] as const;
  return {
    estimand,
    benchmark: 'miniwob',
    tasks,
    seeds: { from: 20_000, to: 20_019 },
    baseline: 'prompting',
    entries: labels.map((label, index) => ({
      label,
      role: roles[index]!,
      note: `policy page, selector ${label}`,
      summary: summaries[label]!,
    })),
    byTask: tasks.map((task) => ({
      task,
      rates: labels.map((label) => {
        const own = rows.filter((row) => row.task === task && row.selector === label);
        return own.filter((row) => row.success).length / own.length;
      }),
    })),
  };
}

export function episode(changes: Partial<EpisodeRecord> = {}): EpisodeRecord {
  return {
    version: 1,
    key: {
      benchmark: 'miniwob',
      task: 'click-button',
      seed: 20_001,
      policy: 'page',
      selector: 'best-of-q',
      generation: 'model',
      repeat: 0,
    },
    attempt: '00000000-0000-4000-8000-000000000001',
    instruction: 'Click the "<OK>" & then stop.',
    startUrl: 'file:///click-button.html',
    outcome: 'success',
    reward: 1,
    rawReward: 1,
    answer: null,
    steps: 1,
    finalObservation: null,
    startedAt: '2026-01-01T00:00:00.000Z',
    durationMs: 400,
    stepsSha256: '',
    ...changes,
  };
}

export function example(): Example {
  return {
    heading: 'click-button, seed 20001',
    reason: 'The baseline failed here.',
    label: 'best-of-q',
    record: episode(),
    steps: [
      {
        index: 0,
        url: 'file:///click-button.html',
        image: 'data:image/webp;base64,UklGRg==',
        viewport: { width: 332, height: 214 },
        point: { x: 83, y: 107 },
        candidates: [
          { action: { type: 'click', element: 'button "Cancel"' }, thought: 'a button', note: '' },
          { action: { type: 'click', element: 'button "<OK>"' }, thought: 'named in the task', note: 'seen' },
        ],
        scores: { q: [0.2, 0.8], spread: [0, 0], v: 0.5 },
        chosen: 1,
        reason: 'highest Q',
        result: 'clicked button "<OK>"',
        ok: true,
      },
    ],
    omittedSteps: 2,
    baseline: {
      label: 'prompting',
      record: episode({ outcome: 'step-limit', reward: 0 }),
      actions: ['click button "Cancel"'],
    },
  };
}

export function reportData(): ReportData {
  return {
    title: 'Best-of-Q on MiniWoB++',
    createdAt: '2026-01-01T12:34:56.000Z',
    evaluations: [evaluation(), evaluation('unseen-tasks')],
    collections: [
      {
        name: 'train',
        path: 'runs/train',
        episodes: 30,
        successes: 12,
        transitions: 90,
        byTask: [
          { task: 'click-button', episodes: 20, successes: 12 },
          { task: 'click-tab', episodes: 10, successes: 0 },
        ],
      },
    ],
    loops: [
      {
        name: 'loop',
        path: '/loops/loop',
        points: [
          { generation: -1, trained: 0, successRate: 0.6, standardError: 0.05, episodes: 100, margin: null },
          { generation: 0, trained: 500, successRate: 0.7, standardError: 0.05, episodes: 100, margin: 0.1 },
          { generation: 1, trained: 700, successRate: 0.8, standardError: 0.04, episodes: 100, margin: 0.1 },
        ],
      },
    ],
    trainings: [
      {
        name: 'model',
        path: 'models/model',
        curves: ['loss/q', 'loss/v'].map((metric) => ({
          metric,
          points: Array.from({ length: 30 }, (_, step) => ({ step: step * 50, value: 1 / (1 + step) })),
        })),
        facts: [['steps', '1,500']],
        offline: {
          head: ['predicts success', 'AUC'],
          rows: [
            ['Q', '0.750'],
            ['V alone', '0.700'],
          ],
          notes: ['Q would pick candidates 1: 50 %.'],
        },
      },
    ],
    examples: [example()],
    provenance: [{ name: 'model', path: 'models/model', facts: [['fingerprint', 'abc']] }],
  };
}
