/** Training data and a model without a vision-language model behind them: narrow, quick, of known width. */
import { embedRun } from '../../ts/learning/embed-run.js';
import type { NativeTrainConfig, NativeTrainRequest } from '../../ts/native/surface.js';
import { trainIql } from '../../ts/native/trainer.js';
import { FakeEmbedder, FakeRun } from './fake-run.js';

/** Nets as small as they get; one step takes well under a millisecond. */
export const smallNets: NativeTrainConfig = {
  preset: 'default',
  projection: 8,
  hidden: [8],
  batchSize: 16,
  validationFraction: 0,
};

/** An embedded run below `folder`. @returns its embedding folder */
export async function embeddedRun(folder: string, embedder = new FakeEmbedder()): Promise<string> {
  return (await embedRun(new FakeRun(folder).fill(30), embedder)).folder;
}

export function trainRequest(data: string, out: string, config: NativeTrainConfig): NativeTrainRequest {
  return { data: [data], out, device: 'cpu', config: { ...smallNets, ...config }, resume: false };
}

/** A trained model in `out`. */
export async function trainedModel(
  data: string,
  out: string,
  config: NativeTrainConfig = {},
): Promise<string> {
  await trainIql(trainRequest(data, out, { steps: 50, ...config }));
  return out;
}
