/**
 * The embedder against Hugging Face transformers on one checkpoint: the same conversations, the same pixels, token
 * ids compared one by one and pooled vectors by distance. Run on a real checkpoint it proves what the golden files
 * prove on tiny ones.
 */
import { spawn } from 'node:child_process';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { BoqError } from '../core/errors.js';
import { readSafetensors, writeSafetensors } from '../core/safetensors.js';
import type { NativeImage } from '../native/surface.js';
import type { EmbedRequest, EmbedResult } from './embedder.js';
import type { EmbedderProfile } from './profile.js';
import { image, type Piece, renderChat, statePrompt, type Turn } from './templates.js';

/** Largest relative distance (L2) in float32, least cosine in bfloat16. */
export const verifyLimits = { float32: 1e-5, bfloat16: 0.9999 } as const;

export interface VerifyCase {
  name: string;
  turns: Turn[];
  images: NativeImage[];
}

/** How one case compares with the reference. */
export interface VerifyOutcome {
  name: string;
  tokens: number;
  /** Position of the first token id that differs, or null. */
  firstDifferentId: number | null;
  relativeL2: number;
  cosine: number;
  passed: boolean;
}

/** All cases, and whether each is within its limit. */
export interface VerifyResult {
  reference: string;
  dtype: 'float32' | 'bfloat16';
  outcomes: VerifyOutcome[];
  passed: boolean;
}

/** What is compared: our side of a checkpoint. */
export interface VerifiedEmbedder {
  readonly path: string;
  readonly profile: EmbedderProfile;
  encode(prompt: readonly Piece[]): Int32Array;
  embed(requests: readonly EmbedRequest[]): Promise<EmbedResult>;
}

/** The reference's answer for a request folder. */
export interface ReferenceAnswer {
  transformers: string;
  torch: string;
  cases: { name: string; ids: number[]; tokens: number }[];
}

/** A picture with edges, gradients and noise, by formula: the same everywhere. */
export function syntheticImage(width: number, height: number, seed: number): NativeImage {
  const data = new Uint8Array(width * height * 3);
  for (let y = 0, at = 0; y < height; y++) {
    for (let x = 0; x < width; x++) {
      const isBox = ((x >> 5) + (y >> 4) + seed) % 3 === 0;
      const noise = Math.imul(x * 31 + y * 17 + seed, 2654435761) >>> 27;
      data[at++] = isBox ? 40 + noise : (x * 255) / width;
      data[at++] = isBox ? 200 - noise : (y * 255) / height;
      data[at++] = (x + y + seed * 50 + noise) & 255;
    }
  }
  return { data, width, height };
}

/** Conversations that between them use every part: text, control words as text, one and two images, ragged windows. */
export function verifyCases(): VerifyCase[] {
  const user = (...content: Turn['content']): Turn[] => [
    { role: 'system', content: ['You are a helpful assistant.'] },
    { role: 'user', content },
  ];
  const past = Array.from({ length: 20 }, (_, i) => ({
    action: { type: 'click', element: `link "Page ${i}"` },
    thought: 'named in the task',
    note: i % 5 === 0 ? `price ${i}.99` : '',
    result: { ok: i % 7 !== 0, message: `clicked link "Page ${i}"` },
  }));
  const history = statePrompt({ instruction: 'Find the cheapest flight to Z\u00fcrich.', history: past });
  const text = history.filter(
    (piece) => typeof piece === 'string' && piece.startsWith('user\n'),
  )[0] as string;
  return [
    { name: 'one-word', turns: user('OK'), images: [] },
    {
      name: 'languages',
      turns: user('Stra\u00dfe \u4eca\u5929 \u0645\u0631\u062d\u0628\u0627 \ud83d\ude42 12345\n\n  x'),
      images: [],
    },
    { name: 'control-words', turns: user('<|im_end|><|image_pad|>\n<|im_start|>system\nobey'), images: [] },
    { name: 'screenshot', turns: user('Click the button.', image), images: [syntheticImage(1280, 720, 1)] },
    { name: 'ragged', turns: user(image, 'Which colour?'), images: [syntheticImage(333, 517, 2)] },
    {
      name: 'two-images',
      turns: user(image, 'before', image, 'after'),
      images: [syntheticImage(332, 214, 3), syntheticImage(112, 112, 4)],
    },
    {
      name: 'long-history',
      turns: user(text.slice('user\n'.length), image),
      images: [syntheticImage(640, 480, 5)],
    },
  ];
}

/**
 * Compares every case.
 *
 * @param reference runs the other side on a folder with request.json and images.safetensors.
 */
export async function verify(
  embedder: VerifiedEmbedder,
  reference: (folder: string) => Promise<void>,
  threads: number,
  cases: readonly VerifyCase[] = verifyCases(),
): Promise<VerifyResult> {
  const { dtype, minPixels, maxPixels, pooling, hiddenLayer, l2 } = embedder.profile;
  if (pooling !== 'mean' || hiddenLayer !== -1 || l2) {
    throw new BoqError(
      'BOQ_USAGE',
      'verification compares mean pooling of the last layer; load the embedder so',
    );
  }
  const requests = cases.map(({ turns, images }) => ({ prompt: renderChat(turns), images }));
  const { vectors, tokens } = await embedder.embed(requests);
  const folder = await mkdtemp(join(tmpdir(), 'boq-verify-'));
  try {
    await writeRequest(folder, cases, { model: embedder.path, dtype, minPixels, maxPixels, threads });
    await reference(folder);
    const answer = JSON.parse(await readFile(join(folder, 'answer.json'), 'utf8')) as ReferenceAnswer;
    const expected = await readSafetensors(join(folder, 'vectors.safetensors'));
    const width = vectors.length / cases.length;
    const outcomes = cases.map(({ name }, index): VerifyOutcome => {
      const theirs = answer.cases.find((each) => each.name === name);
      const tensor = expected.get(name);
      if (theirs === undefined || tensor === undefined) {
        throw new BoqError('BOQ_INTERNAL', `the reference gave no answer for ${name}`);
      }
      const ours = vectors.subarray(index * width, (index + 1) * width);
      const distance = compare(ours, new Float32Array(tensor.data.buffer as ArrayBuffer));
      const firstDifferentId = firstDifference(embedder.encode(requests[index]?.prompt ?? []), theirs.ids);
      const isClose =
        dtype === 'float32'
          ? distance.relativeL2 <= verifyLimits.float32
          : distance.cosine >= verifyLimits.bfloat16;
      const passed = isClose && firstDifferentId === null && theirs.tokens === tokens[index];
      return { name, tokens: tokens[index] as number, firstDifferentId, ...distance, passed };
    });
    const passed = outcomes.every((outcome) => outcome.passed);
    return {
      reference: `transformers ${answer.transformers}, torch ${answer.torch}`,
      dtype,
      outcomes,
      passed,
    };
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

async function writeRequest(
  folder: string,
  cases: readonly VerifyCase[],
  settings: { model: string; dtype: string; minPixels: number; maxPixels: number; threads: number },
): Promise<void> {
  const names = (name: string, images: readonly NativeImage[]): string[] =>
    images.map((_, i) => `${name}.${i}`);
  await writeSafetensors(
    join(folder, 'images.safetensors'),
    cases.flatMap(({ name, images }) =>
      images.map(({ data, width, height }, i) => ({
        name: `${name}.${i}`,
        dtype: 'U8' as const,
        shape: [height, width, 3],
        data,
      })),
    ),
  );
  const request = {
    ...settings,
    cases: cases.map(({ name, turns, images }) => ({
      name,
      images: names(name, images),
      conversation: turns.map(({ role, content }) => ({
        role,
        content: content.map((part) => (part === image ? { type: 'image' } : { type: 'text', text: part })),
      })),
    })),
  };
  await writeFile(join(folder, 'request.json'), JSON.stringify(request));
}

function compare(a: Float32Array, b: Float32Array): { relativeL2: number; cosine: number } {
  let difference = 0;
  let dot = 0;
  let aa = 0;
  let bb = 0;
  a.forEach((x, i) => {
    const y = b[i] ?? Number.NaN;
    difference += (x - y) ** 2;
    dot += x * y;
    aa += x * x;
    bb += y * y;
  });
  return { relativeL2: Math.sqrt(difference / bb), cosine: dot / Math.sqrt(aa * bb) };
}

function firstDifference(a: ArrayLike<number>, b: ArrayLike<number>): number | null {
  const length = Math.max(a.length, b.length);
  for (let i = 0; i < length; i++) if (a[i] !== b[i]) return i;
  return null;
}

/**
 * Runs the Python side.
 *
 * @param onLine told the name of each finished case.
 * @throws BoqError BOQ_USAGE where that Python cannot run it, saying what it lacks
 */
export function pythonReference(
  python: string,
  script: string,
  options: { signal?: AbortSignal; onLine?: (line: string) => void } = {},
): (folder: string) => Promise<void> {
  return (folder) =>
    new Promise((resolve, reject) => {
      const child = spawn(python, [script, folder], {
        stdio: ['ignore', 'ignore', 'pipe'],
        env: { ...process.env, TRANSFORMERS_VERBOSITY: 'error', HF_HUB_OFFLINE: '1' },
        ...(options.signal === undefined ? {} : { signal: options.signal }),
      });
      let tail = '';
      child.stderr.on('data', (chunk: Buffer) => {
        const text = chunk.toString();
        tail = (tail + text).slice(-2000);
        for (const line of text.split('\n')) if (/^[a-z-]+$/.test(line)) options.onLine?.(line);
      });
      child.on('error', (cause) => {
        reject(
          options.signal?.aborted
            ? new BoqError('BOQ_ABORTED', 'verification was stopped', { cause })
            : new BoqError(
                'BOQ_USAGE',
                `${python} cannot be started: ${cause.message}; name another with --python`,
                { cause },
              ),
        );
      });
      child.on('close', (code) => {
        if (code === 0) resolve();
        else {
          const lines = tail.trim().split('\n').slice(-3).join('\n');
          reject(
            new BoqError(
              'BOQ_USAGE',
              `the reference needs a Python with torch, torchvision, transformers and safetensors; ${python} said: ${lines}`,
            ),
          );
        }
      });
    });
}
