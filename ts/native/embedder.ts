/** The frozen vision-language model as C++ sees it: token ids and pixels in, one vector an item out. */
import { type CallOptions, callNative } from './call.js';
import { check, checkDevice, checkInteger, checkOneOf, checkPath } from './check.js';
import { loadAddon } from './load.js';
import type {
  AddonEmbedder,
  NativeEmbedderInfo,
  NativeEmbedderOptions,
  NativeEmbedItem,
  NativeEmbedResult,
} from './surface.js';

const maxPixels = 2 ** 30;
const maxReuseMegabytes = 2 ** 20;

function checkOptions(options: NativeEmbedderOptions): void {
  checkPath(options.path, 'path');
  checkDevice(options.device, 'device');
  checkOneOf(options.dtype, 'dtype', ['auto', 'float32', 'bfloat16']);
  checkOneOf(options.pooling, 'pooling', ['mean', 'last', 'text-mean', 'image-mean']);
  check(typeof options.l2 === 'boolean', 'l2', 'true or false', options.l2);
  checkInteger(options.hiddenLayer, 'hiddenLayer', -1, 10_000);
  checkInteger(options.minPixels, 'minPixels', 1, maxPixels);
  checkInteger(options.maxPixels, 'maxPixels', options.minPixels, maxPixels);
  for (const part of ['prefixes', 'images', 'windows'] as const) {
    check(typeof options.reuse[part] === 'boolean', `reuse.${part}`, 'true or false', options.reuse[part]);
  }
  checkInteger(options.reuse.megabytes, 'reuse.megabytes', 0, maxReuseMegabytes);
}

/** Load with {@link NativeEmbedder.load}; release with `dispose()` or `await using`. */
export class NativeEmbedder implements AsyncDisposable {
  readonly info: NativeEmbedderInfo;
  readonly #addon: AddonEmbedder;

  private constructor(addon: AddonEmbedder) {
    this.#addon = addon;
    this.info = addon.info();
  }

  /**
   * Loads a checkpoint onto a device.
   *
   * @throws BoqError BOQ_INVALID_ARGUMENT, BOQ_FILE_NOT_FOUND, BOQ_FILE_CORRUPT, BOQ_CONFIG_INVALID,
   * BOQ_WEIGHTS_MISSING, BOQ_WEIGHTS_UNEXPECTED, BOQ_CUDA_UNAVAILABLE, BOQ_OUT_OF_MEMORY, BOQ_ABORTED
   */
  static async load(options: NativeEmbedderOptions, call: CallOptions = {}): Promise<NativeEmbedder> {
    checkOptions(options);
    const text = JSON.stringify(options);
    const load = NativeEmbedder.load;
    return new NativeEmbedder(await callNative((token) => loadAddon().loadEmbedder(text, token), call, load));
  }

  /**
   * Embeds any mix of lengths and images, in order. The arrays are copied before this returns.
   *
   * @throws BoqError BOQ_INVALID_ARGUMENT, BOQ_SHAPE_MISMATCH, BOQ_IMAGE_INVALID, BOQ_CONTEXT_OVERFLOW,
   * BOQ_OUT_OF_MEMORY, BOQ_DISPOSED, BOQ_ABORTED
   */
  async embed(items: readonly NativeEmbedItem[], call: CallOptions = {}): Promise<NativeEmbedResult> {
    return callNative((token) => this.#addon.embed(items, token), call, this.embed);
  }

  /** Refuses new calls at once, lets those under way finish, then frees the model. May be called again. */
  async dispose(): Promise<void> {
    await callNative(() => this.#addon.dispose(), {}, this.dispose);
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.dispose();
  }
}
