/**
 * Training as a stage: embedded runs in, a model folder out. The algorithm runs natively in one call; here are the
 * plan that a user reads before it starts, and the model card that a user reads afterwards.
 */
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { BoqError } from '../core/errors.js';
import type {
  NativeTrainConfig,
  NativeTrainProgress,
  NativeTrainRequest,
  NativeTrainSummary,
} from '../native/surface.js';
import { type TrainCallOptions, trainIql } from '../native/trainer.js';
import { type Preset, trainConfig } from './hyper-parameters.js';
import { type ModelConfig, modelCard } from './model-card.js';
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
  device?: string;
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
  /** Tasks in which no episode succeeded: their transitions carry no reward. */
  withoutSuccess: string[];
}

/** What a training leaves. */
export interface TrainResult {
  out: string;
  plan: TrainPlan;
  summary: NativeTrainSummary;
  /** config.json of the model: every setting as it was used. */
  model: ModelConfig;
}

type TrainCall = (request: NativeTrainRequest, options: TrainCallOptions) => Promise<NativeTrainSummary>;

/**
 * Trains Q and V.
 *
 * @param call for tests: the native call.
 * @throws BoqError BOQ_DATA_EMPTY, BOQ_FINGERPRINT_MISMATCH, BOQ_CONFIG_INVALID and those of trainIql()
 */
export async function train(options: TrainOptions, call: TrainCall = trainIql): Promise<TrainResult> {
  const data = await describeData(options.data);
  const plan: TrainPlan = {
    data,
    out: options.out,
    config: trainConfig(options.preset ?? 'default', options.config ?? {}),
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
      data: data.folders,
      out: options.out,
      device: options.device ?? 'auto',
      config: plan.config,
      resume: options.resume ?? false,
    },
    { signal: options.signal, onProgress: options.onProgress },
  );
  const path = join(options.out, 'config.json');
  const model = JSON.parse(await readFile(path, 'utf8')) as ModelConfig;
  await writeFile(join(options.out, 'README.md'), modelCard(model, plan.data, summary));
  return { out: options.out, plan, summary, model };
}

/** The plan in words, a line each. */
export function describePlan({ data, out, config, withoutSuccess }: TrainPlan): string[] {
  const { preset, ...settings } = config;
  const changed = Object.entries(settings).map(([name, value]) => `${name} ${JSON.stringify(value)}`);
  const lines = [
    `Data: ${data.episodes} episodes of ${data.tasks.length} tasks, ${(100 * data.successRate).toFixed(1)} % successful; ` +
      `${data.transitions} transitions, ${data.candidates} candidates; width ${data.width}, embedder ${data.fingerprint}.`,
    `Settings: preset ${preset}${changed.length > 0 ? `, with ${changed.join(', ')}` : ''}. Model: ${out}.`,
  ];
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
