/**
 * A recorded run and an embedder without a model, for the stage that joins them. The embedder's vectors depend on
 * content alone, so any two runs over the same episodes must agree to the bit.
 */
import { createHash } from 'node:crypto';
import type { RunEmbedder } from '../../ts/learning/embed-run.js';
import { type EmbedRequest, type EmbedResult, noReuse, requestKey } from '../../ts/learning/embedder.js';
import type { EmbedderProfile } from '../../ts/learning/profile.js';
import type { RunSource } from '../../ts/learning/run-source.js';
import type { Candidate, EpisodeRecord, Outcome, StepRecord } from '../../ts/store/types.js';

export const fakeWidth = 8;

const fake = {
  width: fakeWidth,
  fingerprint: 'fake0000fake0000',
  profile: {
    model: 'fake',
    template: 'boq-1',
    actionView: 'whole',
    pooling: 'mean',
    l2: false,
    hiddenLayer: -1,
    minPixels: 1,
    maxPixels: 1,
    imageProcessor: 'torchvision',
    dtype: 'float32',
  },
} as const;

export class FakeEmbedder implements RunEmbedder {
  readonly width: number;
  readonly fingerprint: string;
  readonly path = 'models/fake';
  readonly profile: EmbedderProfile;
  /** Items of each native call. */
  readonly calls: number[] = [];
  /** Called before each native call ends. */
  onCall: (calls: number) => void | Promise<void> = () => undefined;

  /** @param like what the vectors pass for */
  constructor(like: Pick<RunEmbedder, 'width' | 'fingerprint' | 'profile'> = fake) {
    this.width = like.width;
    this.fingerprint = like.fingerprint;
    this.profile = like.profile;
  }

  async embed(requests: readonly EmbedRequest[]): Promise<EmbedResult> {
    this.calls.push(requests.length);
    await this.onCall(this.calls.length);
    const { width } = this;
    const vectors = new Float32Array(requests.length * width);
    requests.forEach((request, row) => {
      const bytes = requestKey(request);
      vectors.set(
        Array.from({ length: width }, (_, i) => (bytes[i % bytes.length] as number) / 256),
        row * width,
      );
    });
    const tokens = new Int32Array(requests.length).fill(width);
    return { vectors, tokens, computedTokens: tokens, cached: 0, largestImage: 1, reuse: noReuse() };
  }
}

export const candidate = (element: string, thought = ''): Candidate => ({
  action: { type: 'click', element },
  thought,
  note: '',
});

export function fakeStep(
  index: number,
  candidates: Candidate[],
  chosen: number,
  explored = false,
): StepRecord {
  return {
    index,
    observation: {
      url: 'http://page/',
      title: '',
      viewport: { width: 10, height: 10, deviceScaleFactor: 1 },
      scroll: { x: 0, y: 0 },
      screenshot: `shots/${index}.png`,
      events: [],
    },
    candidates,
    candidateErrors: [],
    scores: null,
    selection: { selector: 'epsilon-greedy', index: chosen, reason: '', evidence: { explored } },
    grounding: null,
    result: { ok: true, message: 'done' },
    usage: [],
    timings: {},
  };
}

/** A run in memory. Screenshots repeat between steps of equal index, as those of a reset page do. */
export class FakeRun implements RunSource {
  readonly folder: string;
  readonly #episodes: { record: EpisodeRecord; steps: StepRecord[] }[] = [];

  constructor(folder: string) {
    this.folder = folder;
  }

  add(task: string, seed: number, outcome: Outcome, steps: StepRecord[]): this {
    const record: EpisodeRecord = {
      version: 1,
      key: {
        benchmark: 'fake',
        task,
        seed,
        policy: 'page',
        selector: 'epsilon-greedy',
        generation: 'none',
        repeat: 0,
      },
      attempt: `${task}-${seed}`,
      instruction: `do ${task}`,
      startUrl: 'http://page/',
      outcome,
      reward: outcome === 'success' ? 1 : 0,
      rawReward: null,
      answer: null,
      steps: steps.length,
      finalObservation: outcome === 'step-limit' ? { ...fakeStep(99, [], 0).observation } : null,
      startedAt: '2026-01-01T00:00:00Z',
      durationMs: 1,
      stepsSha256: createHash('sha256').update(JSON.stringify(steps)).digest('hex'),
    };
    this.#episodes.push({ record, steps });
    return this;
  }

  /** Many episodes of a few tasks, with repeated and with new contents. */
  fill(count: number): this {
    for (let seed = 0; seed < count; seed++) {
      const steps = Array.from({ length: 1 + (seed % 4) }, (_, i) =>
        fakeStep(
          i,
          [candidate('button "OK"'), candidate(`item ${seed}`), candidate(`step ${i}`)],
          (seed + i) % 3,
        ),
      );
      this.add(`task-${seed % 5}`, seed, seed % 2 === 0 ? 'success' : 'step-limit', steps);
    }
    return this;
  }

  async episodes(): Promise<EpisodeRecord[]> {
    return this.#episodes.map(({ record }) => record);
  }

  async steps(episode: EpisodeRecord): Promise<StepRecord[]> {
    return this.#episodes.find(({ record }) => record === episode)?.steps ?? [];
  }

  async screenshot(_episode: EpisodeRecord, name: string): Promise<Uint8Array> {
    return Buffer.from(`pixels of ${name}`);
  }
}
