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
} from '../native/surface.js';
import { decodeImage } from './images.js';
import { type EmbedderProfile, fingerprintOf, hashCheckpoint, readPixelLimits } from './profile.js';
import { type Piece, templateVersion } from './templates.js';
import { PromptTokenizer } from './tokenizer.js';

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
}

/** One sequence to embed. The prompt has one image place (see renderChat) for each image. */
export interface EmbedRequest {
  prompt: readonly Piece[];
  /** PNG, JPEG or WebP bytes, in the order of their places. */
  images?: readonly Uint8Array[];
}

/** vectors: [requests, width], row-major; tokens: of each request, images included. */
export type EmbedResult = NativeEmbedResult;

/** The native model, as far as this class needs it: NativeEmbedder of ts/native. */
export interface ForwardPass {
  readonly info: NativeEmbedderInfo;
  embed(
    items: readonly NativeEmbedItem[],
    call?: { signal?: AbortSignal | undefined },
  ): Promise<NativeEmbedResult>;
  dispose(): Promise<void>;
}

export class Embedder implements AsyncDisposable {
  readonly path: string;
  readonly profile: EmbedderProfile;
  readonly fingerprint: string;
  readonly info: NativeEmbedderInfo;
  readonly #native: ForwardPass;
  readonly #tokenizer: PromptTokenizer;

  private constructor(
    path: string,
    profile: EmbedderProfile,
    native: ForwardPass,
    tokenizer: PromptTokenizer,
  ) {
    this.path = path;
    this.profile = profile;
    this.fingerprint = fingerprintOf(profile);
    this.info = native.info;
    this.#native = native;
    this.#tokenizer = tokenizer;
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
      }),
    ]);
    const dtype = native.info.dtype === 'bfloat16' ? 'bfloat16' : 'float32';
    const profile: EmbedderProfile = {
      model,
      template: templateVersion,
      ...settings,
      imageProcessor: 'torchvision',
      dtype,
    };
    return new Embedder(path, profile, native, tokenizer);
  }

  get width(): number {
    return this.info.width;
  }

  /**
   * Tokens and pixels of one request, as the native side takes them. Cheap beside the forward pass, and safe to run
   * for later requests while earlier ones are being embedded.
   *
   * @throws BoqError BOQ_TOKENIZER, BOQ_IMAGE_INVALID, BOQ_INVALID_ARGUMENT
   */
  async prepare(request: EmbedRequest): Promise<NativeEmbedItem> {
    const images = await Promise.all((request.images ?? []).map((bytes) => decodeImage(bytes)));
    const ids = this.#tokenizer.encode(request.prompt);
    const places = ids.reduce((count, id) => count + (id === this.info.imageTokenId ? 1 : 0), 0);
    if (places !== images.length) {
      throw new BoqError(
        'BOQ_INVALID_ARGUMENT',
        `a prompt needs one image for each of its ${places} image places, but ${images.length} came`,
      );
    }
    return { ids, images };
  }

  /**
   * Embeds a batch of any mix of lengths and images, in order.
   *
   * @throws BoqError the codes of prepare(), BOQ_CONTEXT_OVERFLOW, BOQ_OUT_OF_MEMORY, BOQ_DISPOSED, BOQ_ABORTED
   */
  async embed(requests: readonly EmbedRequest[], signal?: AbortSignal): Promise<EmbedResult> {
    return this.embedPrepared(await Promise.all(requests.map((request) => this.prepare(request))), signal);
  }

  async embedPrepared(items: NativeEmbedItem[], signal?: AbortSignal): Promise<EmbedResult> {
    if (items.length === 0) return { vectors: new Float32Array(0), tokens: new Int32Array(0) };
    return this.#native.embed(items, { signal });
  }

  async dispose(): Promise<void> {
    await this.#native.dispose();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.dispose();
  }
}
