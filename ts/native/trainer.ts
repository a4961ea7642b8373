/** Implicit Q-Learning as one native call a run. */
import { type CallOptions, callNative } from './call.js';
import { check, checkDevice, checkPath } from './check.js';
import { loadAddon } from './load.js';
import type { NativeTrainProgress, NativeTrainRequest, NativeTrainSummary } from './surface.js';

export interface TrainCallOptions extends CallOptions {
  /** At most ten times a second, and always the last step. If it throws, training stops and rejects with that. */
  onProgress?: ((progress: NativeTrainProgress) => void) | undefined;
}

function checkRequest(request: NativeTrainRequest): void {
  check(
    Array.isArray(request.data) && request.data.length > 0,
    'data',
    'a list of embedding folders',
    request.data,
  );
  request.data.forEach((path, index) => {
    checkPath(path, `data[${index}]`);
  });
  checkPath(request.out, 'out');
  checkDevice(request.device, 'device');
  if (request.labels !== undefined) checkPath(request.labels, 'labels');
  const seeds = request.seeds ?? 1;
  check(Number.isSafeInteger(seeds) && seeds >= 1, 'seeds', 'a whole number of at least 1', seeds);
  check(typeof request.resume === 'boolean', 'resume', 'true or false', request.resume);
  const { config } = request;
  check(
    typeof config === 'object' && config !== null && !Array.isArray(config),
    'config',
    'an object',
    config,
  );
  for (const [key, value] of Object.entries(config)) {
    // JSON has no NaN: it would arrive as null and be taken for a missing value.
    const numbers = Array.isArray(value) ? value : [value];
    check(
      numbers.every((each) => typeof each !== 'number' || Number.isFinite(each)),
      `config.${key}`,
      'finite',
      value,
    );
  }
}

/**
 * Trains Q and V and writes the model folder. Aborting a run that has begun is a clean stop: its checkpoint is
 * written and the summary says `stopped`; a run aborted before it began rejects with BOQ_ABORTED.
 *
 * @throws BoqError BOQ_INVALID_ARGUMENT, BOQ_CONFIG_INVALID, BOQ_FILE_NOT_FOUND, BOQ_FILE_CORRUPT, BOQ_FILE_WRITE,
 * BOQ_FINGERPRINT_MISMATCH, BOQ_DATA_EMPTY, BOQ_DATA_INVALID, BOQ_CHECKPOINT_INVALID, BOQ_NOT_FINITE, BOQ_BUSY,
 * BOQ_CUDA_UNAVAILABLE, BOQ_OUT_OF_MEMORY, BOQ_ABORTED
 */
export async function trainIql(
  request: NativeTrainRequest,
  { signal, onProgress }: TrainCallOptions = {},
): Promise<NativeTrainSummary> {
  checkRequest(request);
  const text = JSON.stringify(request);
  return callNative((token) => loadAddon().train(text, onProgress, token), { signal }, trainIql);
}
