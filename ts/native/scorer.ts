/** A trained Q-function and its V. */
import { callNative } from './call.js';
import { checkDevice, checkPath } from './check.js';
import { loadAddon } from './load.js';
import type { AddonScorer, NativeScoreBatch, NativeScorerInfo, NativeScores } from './surface.js';

/** Which Q-function, and where it runs. */
export interface ScorerOptions {
  /** Model folder, as training writes it. */
  path: string;
  /** auto (default) | cpu | cuda | cuda:N */
  device?: string;
}

/** Load with {@link Scorer.load}; release with `dispose()` or `await using`. */
export class Scorer implements AsyncDisposable {
  readonly info: NativeScorerInfo;
  readonly #addon: AddonScorer;

  private constructor(addon: AddonScorer) {
    this.#addon = addon;
    this.info = addon.info();
  }

  /**
   * Loads a model folder onto a device.
   *
   * @throws BoqError BOQ_INVALID_ARGUMENT, BOQ_FILE_NOT_FOUND, BOQ_FILE_CORRUPT, BOQ_CONFIG_INVALID,
   * BOQ_WEIGHTS_MISSING, BOQ_CUDA_UNAVAILABLE, BOQ_OUT_OF_MEMORY
   */
  static async load({ path, device = 'auto' }: ScorerOptions): Promise<Scorer> {
    checkPath(path, 'path');
    checkDevice(device, 'device');
    const text = JSON.stringify({ path, device });
    return new Scorer(await callNative(() => loadAddon().loadScorer(text), {}, Scorer.load));
  }

  /**
   * Q of every candidate and V of every state. The arrays are copied before this returns.
   *
   * @throws BoqError BOQ_INVALID_ARGUMENT, BOQ_SHAPE_MISMATCH, BOQ_NOT_FINITE, BOQ_OUT_OF_MEMORY, BOQ_DISPOSED
   */
  async score(batch: NativeScoreBatch): Promise<NativeScores> {
    return callNative(() => this.#addon.score(batch), {}, this.score);
  }

  /** Refuses new calls at once, lets those under way finish, then frees the model. May be called again. */
  async dispose(): Promise<void> {
    await callNative(() => this.#addon.dispose(), {}, this.dispose);
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.dispose();
  }
}
