/**
 * Q and V of one step, while the policy is still writing its candidates: the state is embedded as soon as it was
 * observed, each action as soon as it is known.
 */
import { BoqError } from '../core/errors.js';
import type { NativeScoreBatch, NativeScores } from '../native/surface.js';
import type { Action, StepScores, Usage } from '../store/types.js';
import { checkpointName } from './checkpoints.js';
import { contentKey } from './key-table.js';
import { type BatchEmbedder, type BatchedVector, MicroBatcher } from './micro-batcher.js';
import type { CalibrationMap } from './model-card.js';
import { type EmbedderProfile, requireSameFingerprint } from './profile.js';
import { type ActionView, actionPrompt, type PastStep, statePrompt, taskPrompt } from './templates.js';

/** What a step is scored on. */
export interface CriticState {
  instruction: string;
  history: readonly PastStep[];
  /** PNG, JPEG or WebP. */
  screenshot: { bytes: Uint8Array };
  signal?: AbortSignal;
}

/** A candidate action as the critic reads it. */
export interface CriticCandidate {
  action: Action;
  thought: string;
  note: string;
}

/** The scoring of one step. `scores()` covers the candidates added so far, in their order. */
export interface CriticStep {
  add(candidate: CriticCandidate): void;
  /** `usage`: what the embedder computed for this step; nothing where every content was known. */
  scores(): Promise<StepScores & { usage?: Usage[] }>;
}

/** What the critic needs of an embedder. */
export interface CriticEmbedder extends BatchEmbedder {
  readonly path: string;
  readonly profile: Pick<EmbedderProfile, 'actionView'>;
  readonly fingerprint: string;
}

/** The native networks, as far as the critic needs them: Scorer of ts/native. */
export interface CriticScorer {
  /** `fingerprint`: of the embedder whose vectors the networks were trained on. */
  readonly info: { fingerprint: string };
  score(batch: NativeScoreBatch): Promise<NativeScores>;
}

/** A trained Q-function behind the embedder it was trained on. Shared by all episodes of a process. */
export class QCritic {
  readonly #scorer: CriticScorer;
  readonly #batcher: MicroBatcher;
  readonly #view: ActionView;
  /** The chance of success that a Q stands for; absent where the model was not calibrated. */
  readonly chance?: (q: number) => number;
  readonly #embedderName: string;

  /**
   * @param model names the scorer in messages: its folder.
   * @param calibration of the model, where it has one.
   * @throws BoqError BOQ_FINGERPRINT_MISMATCH where the model was trained on other embeddings.
   */
  constructor(
    embedder: CriticEmbedder,
    scorer: CriticScorer,
    model: string,
    calibration: CalibrationMap | null = null,
  ) {
    requireSameFingerprint(
      { what: `the model ${model}`, fingerprint: scorer.info.fingerprint },
      { what: `the embedder ${embedder.path}`, fingerprint: embedder.fingerprint },
    );
    this.#scorer = scorer;
    this.#batcher = new MicroBatcher(embedder);
    this.#view = embedder.profile.actionView;
    if (calibration && calibration.q.length > 0) this.chance = (q) => interpolate(calibration, q);
    this.#embedderName = checkpointName(embedder.path);
  }

  /** Embedding requests, answers from memory, and native calls so far. */
  get counts(): Readonly<MicroBatcher['counts']> {
    return this.#batcher.counts;
  }

  begin({ instruction, history, screenshot, signal }: CriticState): CriticStep {
    const state = this.#start({ prompt: statePrompt({ instruction, history }), images: [screenshot.bytes] });
    const task = this.#start({ prompt: taskPrompt(instruction) });
    const actions: { key: string; answer: Promise<BatchedVector> }[] = [];
    return {
      add: (candidate) => {
        const prompt = actionPrompt(candidate, this.#view);
        const key = Buffer.from(contentKey(JSON.stringify(prompt))).toString('latin1');
        actions.push({ key, answer: this.#start({ prompt }) });
      },
      scores: async () => {
        const [ofState, ofTask, ...ofActions] = await Promise.all([
          state,
          task,
          ...actions.map(({ answer }) => answer),
        ]);
        if (signal?.aborted) throw new BoqError('BOQ_ABORTED', 'scoring was aborted by its caller');
        const scores = await this.#score(
          ofState.vector,
          ofTask.vector,
          ofActions.map(({ vector }) => vector),
          actions.map(({ key }) => key),
        );
        const all = [ofState, ofTask, ...ofActions];
        return { ...scores, usage: this.#usage(all.reduce((sum, one) => sum + one.computedTokens, 0)) };
      },
    };
  }

  /** Work that may end before anybody waits for it; a failure reaches whoever asks for the scores. */
  #start(request: Parameters<MicroBatcher['embed']>[0]): Promise<BatchedVector> {
    const answer = this.#batcher.embed(request);
    answer.catch(() => undefined);
    return answer;
  }

  #usage(inputTokens: number): Usage[] {
    if (inputTokens === 0) return [];
    return [{ purpose: 'embedder', model: this.#embedderName, inputTokens, outputTokens: 0 }];
  }

  /** Equal candidates are scored once, so that rounding cannot tell them apart. */
  async #score(
    state: Float32Array,
    task: Float32Array,
    actions: readonly Float32Array[],
    keys: readonly string[],
  ): Promise<StepScores> {
    const distinct = [...new Set(keys)];
    const width = state.length;
    const rows = new Float32Array(distinct.length * width);
    distinct.forEach((key, row) => {
      rows.set(actions[keys.indexOf(key)] as Float32Array, row * width);
    });
    const scores = await this.#scorer.score({
      states: state,
      tasks: task,
      actions: rows,
      owner: new Int32Array(distinct.length),
    });
    const at = (values: Float32Array): number[] => keys.map((key) => values[distinct.indexOf(key)] as number);
    return { q: at(scores.q), spread: at(scores.spread), v: scores.v[0] as number };
  }
}

/** Linear between the map's corners, constant outside them. */
function interpolate({ q: corners, success }: CalibrationMap, q: number): number {
  const after = corners.findIndex((corner) => corner >= q);
  if (after === 0) return success[0]!;
  if (after < 0) return success.at(-1)!;
  const [low, high] = [corners[after - 1]!, corners[after]!];
  return success[after - 1]! + ((q - low) / (high - low)) * (success[after]! - success[after - 1]!);
}

/** Gives every candidate the same value: a control that must gain nothing over the policy's own order. */
export class ConstantCritic {
  readonly embeds = false;

  begin(_state: CriticState): CriticStep {
    let count = 0;
    return {
      add: () => {
        count++;
      },
      scores: async () => ({ q: new Array(count).fill(0), spread: new Array(count).fill(0), v: 0 }),
    };
  }
}
