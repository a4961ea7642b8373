/**
 * The frozen vision-language model as a function from prompts to vectors: tokenizer, image decoder and native
 * forward pass behind one class, with the profile that names exactly which function it is.
 */
import { BoqError } from '../core/errors.js';
import { NativeEmbedder } from '../native/embedder.js';
import type {
  NativeEmbedderInfo,
  NativeEmbedderOptions,
  NativeEmbedItem,
  NativeEmbedResult,
  NativeImage,
  NativeReuseCounts,
  NativeReuseOptions,
} from '../native/surface.js';
import type { ContentCache } from './content-cache.js';
import { decodeImage } from './images.js';
import { contentKey } from './key-table.js';
import { type EmbedderProfile, fingerprintOf, hashCheckpoint, readPixelLimits } from './profile.js';
import { type ActionView, type Piece, templateVersion } from './templates.js';
import { PromptTokenizer } from './tokenizer.js';

/** Which checkpoint, where, and how its hidden states become one vector. */
export interface EmbedderOptions {
  /** Checkpoint folder in the Hugging Face layout. */
  path: string;
  /** 'auto', 'cpu' or 'cuda:N'. */
  device?: string;
  /** 'auto' takes bfloat16 where the processor has it. */
  dtype?: 'auto' | 'float32' | 'bfloat16';
  pooling?: 'mean' | 'last' | 'text-mean' | 'image-mean';
  /** Scale every vector to length 1. */
  l2?: boolean;
  /** -1: after the final norm; k: output of layer k. */
  hiddenLayer?: number;
  /** Limits on an image's area after scaling; by default those of the checkpoint. */
  minPixels?: number;
  maxPixels?: number;
  /** What of a candidate its prompt shows; part of the profile, and up to whoever writes the prompts. Default whole. */
  actionView?: ActionView;
  /** Looked up before anything is computed; stays the caller's to close. */
  cache?: ContentCache;
  /** What may be remembered to do less work; all of it by default, in 512 MiB. Results differ by rounding alone. */
  reuse?: Partial<NativeReuseOptions>;
}

const defaultReuse: NativeReuseOptions = { prefixes: true, images: true, windows: true, megabytes: 512 };

/** Counts of a call that computed nothing. */
export const noReuse = (): NativeReuseCounts => ({
  tokens: 0,
  computedTokens: 0,
  images: 0,
  computedImages: 0,
  windows: 0,
  computedWindows: 0,
});

/** PNG, JPEG or WebP bytes, or RGB pixels. */
export type ImageInput = Uint8Array | NativeImage;

/** One sequence to embed. The prompt has one image place (see renderChat) for each image. */
export interface EmbedRequest {
  prompt: readonly Piece[];
  /** In the order of their places. */
  images?: readonly ImageInput[];
}

/** Vectors, one row an item, and what they took. */
export interface EmbedResult extends NativeEmbedResult {
  /** Requests that the cache answered. */
  cached: number;
  /** Tokens of each request that went through the forward pass: 0 where the cache answered. */
  computedTokens: Int32Array;
  /** Bytes of the largest decoded image of this call. */
  largestImage: number;
}

/** 16 bytes over everything that a request consists of. */
export function requestKey({ prompt, images = [] }: EmbedRequest): Uint8Array {
  const parts: (string | Uint8Array)[] = prompt.map((piece) =>
    typeof piece === 'string' ? `t${piece}` : `c${piece.control}`,
  );
  for (const image of images) {
    if (image instanceof Uint8Array) parts.push(image);
    else parts.push(`${image.width}x${image.height}`, image.data);
  }
  return contentKey(...parts);
}

/** The native model, as far as this class needs it: NativeEmbedder of ts/native. */
export interface ForwardPass {
  readonly info: NativeEmbedderInfo;
  embed(
    items: readonly NativeEmbedItem[],
    call?: { signal?: AbortSignal | undefined },
  ): Promise<NativeEmbedResult>;
  dispose(): Promise<void>;
}

/** Load with {@link Embedder.load}; release with `dispose()` or `await using`. */
export class Embedder implements AsyncDisposable {
  readonly path: string;
  readonly profile: EmbedderProfile;
  readonly fingerprint: string;
  readonly info: NativeEmbedderInfo;
  readonly #native: ForwardPass;
  readonly #tokenizer: PromptTokenizer;
  readonly #cache: ContentCache | undefined;
  readonly #reused = noReuse();

  private constructor(
    path: string,
    profile: EmbedderProfile,
    native: ForwardPass,
    tokenizer: PromptTokenizer,
    cache: ContentCache | undefined,
  ) {
    this.path = path;
    this.profile = profile;
    this.fingerprint = fingerprintOf(profile);
    this.info = native.info;
    this.#native = native;
    this.#tokenizer = tokenizer;
    this.#cache = cache;
  }

  /**
   * Loads a checkpoint. Hashing, tokenizer and weights are read at the same time.
   *
   * @throws BoqError BOQ_FILE_NOT_FOUND, BOQ_FILE_CORRUPT, BOQ_CONFIG_INVALID, BOQ_WEIGHTS_MISSING,
   * BOQ_WEIGHTS_UNEXPECTED, BOQ_CUDA_UNAVAILABLE, BOQ_OUT_OF_MEMORY
   */
  static async load(
    options: EmbedderOptions,
    loadNative: (options: NativeEmbedderOptions) => Promise<ForwardPass> = NativeEmbedder.load,
  ): Promise<Embedder> {
    const { path } = options;
    const limits = await readPixelLimits(path);
    const settings = {
      pooling: options.pooling ?? 'mean',
      l2: options.l2 ?? false,
      hiddenLayer: options.hiddenLayer ?? -1,
      minPixels: options.minPixels ?? limits.minPixels,
      maxPixels: options.maxPixels ?? limits.maxPixels,
    } as const;
    const [model, tokenizer, native] = await Promise.all([
      hashCheckpoint(path),
      PromptTokenizer.load(path),
      loadNative({
        path,
        device: options.device ?? 'auto',
        dtype: options.dtype ?? 'auto',
        ...settings,
        reuse: { ...defaultReuse, ...options.reuse },
      }),
    ]);
    const dtype = native.info.dtype === 'bfloat16' ? 'bfloat16' : 'float32';
    const profile: EmbedderProfile = {
      model,
      template: templateVersion,
      actionView: options.actionView ?? 'whole',
      ...settings,
      imageProcessor: 'torchvision',
      dtype,
    };
    return new Embedder(path, profile, native, tokenizer, options.cache);
  }

  get width(): number {
    return this.info.width;
  }

  /** What the forward pass was asked for and what it computed, since loading. */
  get reuse(): Readonly<NativeReuseCounts> {
    return this.#reused;
  }

  /**
   * Embeds a batch of any mix of lengths and images, in order. Calls may overlap: tokens and pixels of one are made
   * while another is being embedded.
   *
   * @throws BoqError BOQ_TOKENIZER, BOQ_IMAGE_INVALID, BOQ_INVALID_ARGUMENT, BOQ_CONTEXT_OVERFLOW, BOQ_OUT_OF_MEMORY,
   * BOQ_DISPOSED, BOQ_ABORTED
   */
  async embed(requests: readonly EmbedRequest[], signal?: AbortSignal): Promise<EmbedResult> {
    const vectors = new Float32Array(requests.length * this.width);
    const tokens = new Int32Array(requests.length);
    const computedTokens = new Int32Array(requests.length);
    const keys = this.#cache === undefined ? [] : requests.map(requestKey);
    const missing: number[] = [];
    requests.forEach((_, index) => {
      const known = this.#cache?.get(this.fingerprint, keys[index] as Uint8Array, this.width);
      if (known) {
        vectors.set(known.vector, index * this.width);
        tokens[index] = known.tokens;
      } else missing.push(index);
    });
    if (missing.length === 0) {
      return { vectors, tokens, computedTokens, cached: requests.length, largestImage: 0, reuse: noReuse() };
    }
    const items = await Promise.all(missing.map((index) => this.#prepare(requests[index] as EmbedRequest)));
    const computed = await this.#native.embed(items, { signal });
    const { reuse } = computed;
    for (const name of Object.keys(this.#reused) as (keyof NativeReuseCounts)[])
      this.#reused[name] += reuse[name];
    const rows = missing.map((index, row) => {
      const vector = computed.vectors.subarray(row * this.width, (row + 1) * this.width);
      const count = computed.tokens[row] as number;
      vectors.set(vector, index * this.width);
      tokens[index] = count;
      computedTokens[index] = count;
      return { key: keys[index] as Uint8Array, vector, tokens: count };
    });
    await this.#cache?.put(this.fingerprint, rows);
    const largestImage = Math.max(0, ...items.flatMap(({ images }) => images.map(({ data }) => data.length)));
    const cached = requests.length - missing.length;
    return { vectors, tokens, computedTokens, cached, largestImage, reuse };
  }

  /** Token ids of a prompt, one image-pad id for each image. @throws BoqError BOQ_TOKENIZER */
  encode(prompt: readonly Piece[]): Int32Array {
    return this.#tokenizer.encode(prompt);
  }

  /** Tokens and pixels of one request, as the native side takes them. */
  async #prepare({ prompt, images = [] }: EmbedRequest): Promise<NativeEmbedItem> {
    const pixels = await Promise.all(
      images.map((image) => (image instanceof Uint8Array ? decodeImage(image) : image)),
    );
    const ids = this.#tokenizer.encode(prompt);
    if (ids.length === 0)
      throw new BoqError('BOQ_INVALID_ARGUMENT', 'a prompt needs at least one token, this one is empty');
    const places = ids.reduce((count, id) => count + (id === this.info.imageTokenId ? 1 : 0), 0);
    if (places !== pixels.length) {
      throw new BoqError(
        'BOQ_INVALID_ARGUMENT',
        `a prompt needs one image for each of its ${places} image places, but ${pixels.length} came`,
      );
    }
    return { ids, images: pixels };
  }

  async dispose(): Promise<void> {
    await this.#native.dispose();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.dispose();
  }
}
