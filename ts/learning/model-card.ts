/** README.md of a model folder: what it was trained on, how, and what it may be used for. */
import type { NativeModelSummary } from '../native/surface.js';
import type { TrainingData } from './training-data.js';

/** config.json of a model folder, as native training writes it; docs/data-formats.md describes it. */
export interface ModelConfig {
  version: number;
  kind: string;
  width: number;
  heads: number;
  fingerprint: string;
  profile: Record<string, unknown>;
  config: Record<string, unknown>;
  parameters: { q: number; v: number };
  data: { path: string; transitions: number; episodes: number; successRate: number }[];
  steps: number;
  metrics: Record<string, number>;
  /** null, or without corners, where no episodes were held out. */
  calibration?: CalibrationMap | null;
  /** Model folder whose weights training started from; null: new ones. */
  startedFrom?: string | null;
}

/** Corners of a non-decreasing map from Q to the chance of success, q ascending. */
export interface CalibrationMap {
  q: number[];
  success: number[];
}

export function modelCard(
  model: ModelConfig,
  data: TrainingData,
  summary: Pick<NativeModelSummary, 'steps' | 'stopped' | 'seconds'>,
): string {
  const percent = (share: number): string => `${(100 * share).toFixed(1)} %`;
  const rows = (values: Record<string, unknown>): string =>
    Object.entries(values)
      .map(([name, value]) => `| ${name} | ${typeof value === 'object' ? JSON.stringify(value) : value} |`)
      .join('\n');
  const tasks = data.tasks
    .map(({ name, episodes, successes }) => `| ${name} | ${episodes} | ${percent(successes / episodes)} |`)
    .join('\n');
  return `# Q-function for Best-of-Q

Ranks the candidate actions of a web agent's step. Q scores a state, an action and a task, V a state and a task; both
were trained offline by Implicit Q-Learning (arXiv 2110.06169) on recorded episodes, as in Best-of-Q (arXiv 2601.22701).

* Embeddings: width ${model.width}, fingerprint ${model.fingerprint}. Only vectors of this fingerprint may be scored.
* Networks: ${model.heads} head${model.heads === 1 ? '' : 's'}; ${model.parameters.q} parameters in Q, ${model.parameters.v} in V.
* Training: ${summary.steps} gradient steps${summary.stopped ? ', stopped early by its user' : ''}, ${summary.seconds.toFixed(0)} s.
* Data: ${data.episodes} episodes, ${data.transitions} transitions, ${percent(data.successRate)} successful.

Values are discounted chances of success under the policies that recorded the data. For tasks, sites or policies that
the data does not show they are guesses: measure before relying on them.

## Data by task

| task | episodes | success |
|---|---|---|
${tasks}

## Settings

| name | value |
|---|---|
${rows(model.config)}

## Last metrics

| name | value |
|---|---|
${rows(model.metrics)}

## Embedder profile

| name | value |
|---|---|
${rows(model.profile)}
`;
}
