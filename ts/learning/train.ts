/**
 * Training as a stage: embedded runs in, a model folder out. The algorithm runs natively in one call; here are the
 * plan that a user reads before it starts, and the model card that a user reads afterwards.
 */
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { BoqError } from '../core/errors.js';
import type {
  NativeModelSummary,
  NativeTrainConfig,
  NativeTrainProgress,
  NativeTrainRequest,
  NativeTrainSummary,
  NativeTrainSweep,
} from '../native/surface.js';
import { type TrainCallOptions, trainIql } from '../native/trainer.js';
import type { Backup } from './backup.js';
import { type Preset, trainConfig } from './hyper-parameters.js';
import { type LabelSummary, writeLabelFolder } from './label-folder.js';
import { Labels } from './labels.js';
import { type ModelConfig, modelCard } from './model-card.js';
import { type OfflineReport, readOfflineReport } from './offline.js';
import { describeData, type TrainingData } from './training-data.js';

/** Data, place and hyper-parameters of a training. */
export interface TrainOptions {
  /** Run folders or embedding folders; all embedded by one embedder. */
  data: readonly string[];
  /** Model folder to write. */
  out: string;
  preset?: Preset;
  /** Hyper-parameters that differ from the preset's. */
  config?: NativeTrainConfig;
  /** Trains as many models with seeds one after the other, each in a folder of `out`. Default 1: the model is `out`. */
  seeds?: number;
  /** Trains a model for each combination of these values, each in a folder of `out` named after what sets it apart. */
  sweep?: NativeTrainSweep;
  device?: string;
  /** A file of outcomes judged again (docs/data-formats.md): training takes them in place of the recorded ones. */
  labels?: string;
  /**
   * Learns besides from one transition for each action tried, whose reward is the best, or the mean, of what was reached
   * behind it in any episode, backed up with the training's own discount. For runs of tree exploration.
   */
  backup?: Backup;
  /** A model of the same networks and embeddings whose weights training starts from, in place of new ones. */
  startFrom?: string;
  /** Go on from the checkpoint in `out`, where an earlier call was stopped. */
  resume?: boolean;
  /** Ends training at the next step, with a complete model and checkpoint. */
  signal?: AbortSignal;
  onPlan?: (plan: TrainPlan) => void;
  onProgress?: (progress: NativeTrainProgress) => void;
}

/** What a training is about to do, told before its first step. */
export interface TrainPlan {
  data: TrainingData;
  out: string;
  config: NativeTrainConfig;
  /** Transitions whose reward is a backed-up value, beside those of the data; 0 without `backup`. */
  backedUp: number;
  /** Models to train: seeds times combinations of values. */
  models: number;
  /** Tasks in which no episode succeeded: their transitions carry no reward. */
  withoutSuccess: string[];
}

/** One trained model. */
export interface TrainedModel {
  out: string;
  summary: NativeModelSummary;
  /** config.json: every setting as it was used. */
  model: ModelConfig;
  /** What held-out episodes say about it. */
  offline: OfflineReport | null;
}

/** What a training leaves. */
export interface TrainResult {
  plan: TrainPlan;
  summary: NativeTrainSummary;
  /** Folder and config.json of the first model. */
  out: string;
  model: ModelConfig;
  /** All of them: one, unless seeds or settings were compared. */
  models: TrainedModel[];
}

type TrainCall = (request: NativeTrainRequest, options: TrainCallOptions) => Promise<NativeTrainSummary>;

/**
 * Trains Q and V.
 *
 * @param call for tests: the native call.
 * @throws BoqError BOQ_DATA_EMPTY, BOQ_FINGERPRINT_MISMATCH, BOQ_CONFIG_INVALID and those of trainIql()
 */
export async function train(options: TrainOptions, call: TrainCall = trainIql): Promise<TrainResult> {
  if (options.labels !== undefined && options.backup !== undefined) {
    throw new BoqError(
      'BOQ_USAGE',
      'labels and backup exclude each other: what is backed up are the recorded outcomes',
    );
  }
  if (options.backup !== undefined && options.sweep?.gamma !== undefined) {
    throw new BoqError(
      'BOQ_USAGE',
      'expected one discount where values are backed up with it; train each value of gamma by itself',
    );
  }
  const labels = options.labels === undefined ? undefined : await Labels.read(options.labels);
  const config = trainConfig(options.preset ?? 'default', options.config ?? {});
  const data = await describeData(options.data, labels);
  const backedUp = options.backup ? await backUp(data.folders, options.backup, config) : [];
  const plan: TrainPlan = {
    data,
    out: options.out,
    config,
    backedUp: backedUp.reduce((sum, { actions }) => sum + actions, 0),
    models: Object.values(options.sweep ?? {}).reduce(
      (count, values) => count * values.length,
      options.seeds ?? 1,
    ),
    withoutSuccess: data.tasks.filter(({ successes }) => successes === 0).map(({ name }) => name),
  };
  options.onPlan?.(plan);
  if (plan.withoutSuccess.length === data.tasks.length && plan.config.allowSingleOutcome !== true) {
    throw new BoqError(
      'BOQ_DATA_EMPTY',
      `training needs at least one successful episode, but none of the ${data.episodes} episodes in ` +
        `${data.folders.join(', ')} succeeded; collect more, or easier tasks`,
    );
  }
  const summary = await call(
    {
      data: [...data.folders, ...backedUp.map(({ folder }) => folder)],
      out: options.out,
      device: options.device ?? 'auto',
      config: plan.config,
      resume: options.resume ?? false,
      ...(options.labels !== undefined && { labels: options.labels }),
      ...(options.startFrom !== undefined && { startFrom: options.startFrom }),
      ...(options.seeds !== undefined && { seeds: options.seeds }),
      ...(options.sweep !== undefined && { sweep: options.sweep }),
    },
    { signal: options.signal, onProgress: options.onProgress },
  );
  const models: TrainedModel[] = [];
  for (const each of summary.models) {
    const out = each.name === '' ? options.out : join(options.out, each.name);
    if (each.stopped && each.steps === 0) continue; // of a sweep: not begun yet
    const model = JSON.parse(await readFile(join(out, 'config.json'), 'utf8')) as ModelConfig;
    await writeFile(join(out, 'README.md'), modelCard(model, plan.data, each));
    const offline = await readOfflineReport(out).catch(() => null);
    models.push({ out, summary: each, model, offline });
  }
  const [first] = models;
  if (first === undefined) throw new BoqError('BOQ_ABORTED', 'training was stopped before its first step');
  return { plan, summary, out: first.out, model: first.model, models };
}

/** Label folders of these embeddings, in each of them, in their order. */
async function backUp(
  folders: readonly string[],
  backup: Backup,
  config: NativeTrainConfig,
): Promise<LabelSummary[]> {
  const gamma = Number(config.gamma ?? 0.99); // the trainer's own default
  const written: LabelSummary[] = [];
  for (const folder of folders) {
    const out = join(folder, `labels-${backup}-${gamma}`);
    written.push(await writeLabelFolder(folder, out, { backup, gamma }));
  }
  return written;
}

/** The plan in words, a line each. */
export function describePlan({ data, out, config, backedUp, models, withoutSuccess }: TrainPlan): string[] {
  const { preset, ...settings } = config;
  const changed = Object.entries(settings).map(([name, value]) => `${name} ${JSON.stringify(value)}`);
  const lines = [
    `Data: ${data.episodes} episodes of ${data.tasks.length} tasks, ${(100 * data.successRate).toFixed(1)} % successful; ` +
      `${data.transitions} transitions, ${data.candidates} candidates; width ${data.width}, embedder ${data.fingerprint}.`,
    `Settings: preset ${preset}${changed.length > 0 ? `, with ${changed.join(', ')}` : ''}. ` +
      (models > 1 ? `${models} models in ${out}.` : `Model: ${out}.`),
  ];
  if (backedUp > 0) lines.push(`Besides, a backed-up value for each of ${backedUp} actions tried.`);
  if (withoutSuccess.length > 0) {
    const named = withoutSuccess.slice(0, 12).join(', ');
    const others = withoutSuccess.length > 12 ? ` and ${withoutSuccess.length - 12} more` : '';
    lines.push(
      `No success in ${named}${others}: nothing there shows a reward, so Q can only learn that these tasks are ` +
        'worth little, not which action helps. More episodes or another policy would.',
    );
  }
  return lines;
}
