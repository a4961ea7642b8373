/**
 * The one typed description of what build/Release/boq_native.node exports (`Addon*`), and of the values that
 * cross (`Native*`). Only this folder touches the binary: load.ts finds it, the classes beside it give it its
 * public face. Options cross as one JSON string, so that C++ meets no getter and no cycle; bulk data crosses as
 * typed arrays, copied both ways. Every promise settles with the device's FIFO job thread behind it.
 */

/** What the binary is and what it runs on. */
export interface NativeBuildInfo {
  /** Version of this package at build time. */
  version: string;
  torch: string;
  /** The libtorch variant it was linked with. */
  variant: 'cpu' | 'cuda';
  /** CUDA runtime of libtorch, null for the CPU variant. */
  cuda: string | null;
  cudaAvailable: boolean;
  /** Why CUDA cannot be used; empty where it can. */
  cudaProblem: string;
  cudaDevices: string[];
  cpuCapability: string;
  /** True where the processor has bfloat16 matrix instructions. */
  bf16: boolean;
  /** Threads of the CPU job thread: this process' share of the processors. */
  threads: number;
  napi: number;
  compiler: string;
}

export interface NativeEmbedderOptions {
  /** Folder in the Hugging Face layout: config.json, *.safetensors, preprocessor_config.json. */
  path: string;
  /** auto | cpu | cuda | cuda:N */
  device: string;
  dtype: 'auto' | 'float32' | 'bfloat16';
  pooling: 'mean' | 'last' | 'text-mean' | 'image-mean';
  l2: boolean;
  /** -1: after the final norm (default); k: output of layer k. */
  hiddenLayer: number;
  minPixels: number;
  maxPixels: number;
  reuse: NativeReuseOptions;
}

/** What the embedder may remember to do less work: exact in real arithmetic, so results differ by rounding alone. */
export interface NativeReuseOptions {
  /** Beginnings of text, within a call and between calls. */
  prefixes: boolean;
  /** Features of an image that comes again. */
  images: boolean;
  /** Windows of the vision tower that come again, in the same image or a later one. */
  windows: boolean;
  /** Memory for all of them together, in MiB. */
  megabytes: number;
}

/** What one call asked for and what was computed; the difference of each pair was reused. */
export interface NativeReuseCounts {
  tokens: number;
  computedTokens: number;
  images: number;
  computedImages: number;
  /** Of the computed images. */
  windows: number;
  computedWindows: number;
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

/** What an embedder is and where it runs. */
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
  reuse: NativeReuseCounts;
}

/** Every hyper-parameter, resolved: native/iql/config.h holds the same names in snake_case, with sources. */
export type NativeTrainConfig = Record<string, number | string | boolean | null | number[]>;

/** One moment of a training run. */
export interface NativeTrainProgress {
  step: number;
  steps: number;
  stepsPerSecond: number;
  metrics: Record<string, number>;
}

export interface NativeTrainRequest {
  /** Embedding folders (runs/<run>/embeddings/<fingerprint>), all of one fingerprint. */
  data: string[];
  /** Model folder to write; holds checkpoints while training goes on. */
  out: string;
  /** auto | cpu | cuda | cuda:N */
  device: string;
  config: NativeTrainConfig;
  /** Continue from the checkpoint in `out`. */
  resume: boolean;
  /** A file of outcomes judged again; see docs/data-formats.md. */
  labels?: string;
  /** Model folder whose weights training starts from; new ones where left out. */
  startFrom?: string;
  /** Above 1: as many models, each in a folder of `out` named after its seed. */
  seeds?: number;
  /** Settings and the values to compare: a model for each combination, in a folder of `out` named after it. */
  sweep?: NativeTrainSweep;
}

export type NativeTrainSweep = Record<string, (number | string | boolean | number[])[]>;

/** How the training of one model ended. */
export interface NativeModelSummary {
  /** Its folder in `out`; empty where it is `out` itself. */
  name: string;
  steps: number;
  /** True where the run was stopped early by its signal; the checkpoint is complete either way. */
  stopped: boolean;
  seconds: number;
  metrics: Record<string, number>;
  parameters: { q: number; v: number };
}

/** Of the first model, `stopped` of any of them, and all of them. */
export interface NativeTrainSummary extends Omit<NativeModelSummary, 'name'> {
  models: NativeModelSummary[];
}

/** What a Q-function is and where it runs. */
export interface NativeScorerInfo {
  /** Width of the embeddings the model was trained on. */
  width: number;
  heads: number;
  /** Of the embedder whose vectors it was trained on. */
  fingerprint: string;
}

/** One batch: `states[i]` belongs with `tasks[i]`; candidate j belongs to state `owner[j]`. Rows are [*, width]. */
export interface NativeScoreBatch {
  states: Float32Array;
  tasks: Float32Array;
  actions: Float32Array;
  owner: Int32Array;
}

/** Values of one batch. */
export interface NativeScores {
  /** [candidates]: mean over heads, online network, no dropout. */
  q: Float32Array;
  /** [candidates]: standard deviation over heads. */
  spread: Float32Array;
  /** [states] */
  v: Float32Array;
}

/** What an AbortSignal becomes: the job ends at its next check, one that has not begun is rejected at once. */
export interface AddonCancelToken {
  cancel(): void;
}

export interface AddonEmbedder {
  info(): NativeEmbedderInfo;
  embed(items: readonly NativeEmbedItem[], token?: AddonCancelToken): Promise<NativeEmbedResult>;
  dispose(): Promise<void>;
}

export interface AddonScorer {
  info(): NativeScorerInfo;
  score(batch: NativeScoreBatch): Promise<NativeScores>;
  dispose(): Promise<void>;
}

export interface Addon {
  buildInfo(): NativeBuildInfo;
  createCancelToken(): AddonCancelToken;
  /** `options`: JSON of NativeEmbedderOptions. */
  loadEmbedder(options: string, token?: AddonCancelToken): Promise<AddonEmbedder>;
  /** `options`: JSON of { path, device }. */
  loadScorer(options: string): Promise<AddonScorer>;
  /** `request`: JSON of NativeTrainRequest. Progress comes at most ten times a second, and always the last. */
  train(
    request: string,
    onProgress?: (progress: NativeTrainProgress) => void,
    token?: AddonCancelToken,
  ): Promise<NativeTrainSummary>;
  /** For process exit: cancels what runs, starts nothing more, waits briefly. True where no job runs any more. */
  halt(): boolean;
}

/** The names above, for the test that compares them with the binary. */
export const addonExports = [
  'buildInfo',
  'createCancelToken',
  'loadEmbedder',
  'loadScorer',
  'train',
  'halt',
] as const satisfies readonly (keyof Addon)[];
