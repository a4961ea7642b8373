/**
 * The one typed description of what build/Release/boq_native.node exports. Nothing else in TypeScript touches the
 * binary. JSON-like options are checked for meaning in TypeScript and again for safety in C++. Every async call
 * runs on the device's FIFO job thread; typed arrays are copied in and out.
 */

export interface NativeBuildInfo {
  version: string;
  torch: string;
  /** CUDA version libtorch was built for, null for a CPU build. */
  cuda: string | null;
  cudaAvailable: boolean;
  cudaDevices: string[];
  cpuCapability: string;
  bf16: boolean;
  threads: number;
  napi: number;
  compiler: string;
}

/** Handed to every long call. `cancel()` may be called from any turn of the event loop; then BOQ_ABORTED. */
export interface NativeCancelToken {
  cancel(): void;
}

export interface NativeEmbedderOptions {
  /** Folder in the Hugging Face layout: config.json, *.safetensors, preprocessor_config.json. */
  path: string;
  device: string;
  dtype: 'auto' | 'float32' | 'bfloat16';
  pooling: 'mean' | 'last' | 'text-mean' | 'image-mean';
  l2: boolean;
  /** -1: after the final norm (default); k: output of layer k. */
  hiddenLayer: number;
  minPixels: number;
  maxPixels: number;
}

export interface NativeImage {
  /** RGB bytes, row-major, width * height * 3. */
  data: Uint8Array;
  width: number;
  height: number;
}

/** One sequence. `ids` holds exactly one image-pad id per image; C++ expands it to the image's token count. */
export interface NativeEmbedItem {
  ids: Int32Array;
  images: NativeImage[];
}

export interface NativeEmbedderInfo {
  width: number;
  layers: number;
  device: string;
  dtype: string;
  maxTokens: number;
  imageTokenId: number;
  parameterCount: number;
}

export interface NativeEmbedResult {
  /** [items, width], row-major. */
  vectors: Float32Array;
  /** Tokens of each item after image expansion. */
  tokens: Int32Array;
}

export interface NativeEmbedder {
  info(): NativeEmbedderInfo;
  embed(items: NativeEmbedItem[], token?: NativeCancelToken): Promise<NativeEmbedResult>;
  dispose(): Promise<void>;
}

/** Every hyper-parameter, resolved: native/iql/config.h holds the same names in snake_case, with sources. */
export type NativeTrainConfig = Record<string, number | string | boolean | number[]>;

export interface NativeTrainProgress {
  step: number;
  steps: number;
  stepsPerSecond: number;
  metrics: Record<string, number>;
}

export interface NativeTrainOptions {
  /** Embedding folders (runs/<run>/embeddings/<fingerprint>), all of one fingerprint. */
  data: string[];
  /** Model folder to write; holds checkpoints while training goes on. */
  out: string;
  device: string;
  config: NativeTrainConfig;
  /** Continue from the checkpoint in `out`. */
  resume: boolean;
}

export interface NativeTrainSummary {
  steps: number;
  /** True where the run was stopped early by its token; the checkpoint is complete either way. */
  stopped: boolean;
  seconds: number;
  metrics: Record<string, number>;
  parameters: { q: number; v: number };
}

/** One batch: `states[i]` belongs with `tasks[i]`; candidate j belongs to state `owner[j]`. Rows are [*, width]. */
export interface NativeScoreBatch {
  states: Float32Array;
  tasks: Float32Array;
  actions: Float32Array;
  owner: Int32Array;
}

export interface NativeScores {
  /** [candidates]: mean over heads, online network, no dropout. */
  q: Float32Array;
  /** [candidates]: standard deviation over heads. */
  spread: Float32Array;
  /** [states] */
  v: Float32Array;
}

export interface NativeScorer {
  info(): { width: number; heads: number; fingerprint: string };
  score(batch: NativeScoreBatch): Promise<NativeScores>;
  dispose(): Promise<void>;
}

export interface NativeBinding {
  buildInfo(): NativeBuildInfo;
  createCancelToken(): NativeCancelToken;
  loadEmbedder(options: NativeEmbedderOptions, token?: NativeCancelToken): Promise<NativeEmbedder>;
  train(
    options: NativeTrainOptions,
    onProgress: ((progress: NativeTrainProgress) => void) | undefined,
    token?: NativeCancelToken,
  ): Promise<NativeTrainSummary>;
  loadScorer(options: { path: string; device: string }): Promise<NativeScorer>;
}
