/**
 * One episode: observe -> propose -> score -> select -> ground -> act, until the task is over or a limit is met.
 * What the policy does badly is recorded; what breaks underneath (browser, endpoint, disk) is thrown, and the
 * caller tries the episode again.
 */
import { BoqError } from '../core/errors.js';
import { describeAction } from '../learning/templates.js';
import type {
  Action,
  ActionResult,
  Candidate,
  CandidateError,
  Grounding,
  ObservationRecord,
  Outcome,
  Point,
  Selection,
  StepRecord,
  StepScores,
  Usage,
} from '../store/types.js';
import { DistinctCandidates } from './distinct-candidates.js';
import type { EpisodeResult, RunEpisodeOptions } from './episode.js';
import { irreversibleKind } from './irreversible.js';
import { PhaseClock } from './phase-clock.js';
import type { HistoryEntry, Observation, StepScoring, Verdict } from './types.js';
import { usageOf } from './vlm/index.js';

/** Steps in a row without one valid candidate after which the policy is taken to have no answer. */
const emptyStepsAllowed = 3;

/** Done in place of an action where the policy offered nothing valid, so that every step has one. */
const waiting: Candidate = { action: { type: 'wait' }, thought: '', note: '' };

/**
 * Plays one episode to its end.
 * @throws BOQ_ABORTED when `signal` says so; whatever environment, proposer, critic or recorder throw
 */
export async function runEpisode(options: RunEpisodeOptions): Promise<EpisodeResult> {
  const result = await new EpisodeRun(options).play();
  options.onEvent?.({ type: 'end', result });
  return result;
}

interface Proposed {
  candidates: Candidate[];
  /** Which of them are equal. */
  distinct: DistinctCandidates;
  errors: CandidateError[];
  usage: Usage[];
}

class EpisodeRun {
  readonly #options: RunEpisodeOptions;
  readonly #history: HistoryEntry[] = [];
  /** Aborted by the caller, by the time limit or by the episode's end. */
  readonly #ended = new AbortController();
  #timedOut = false;
  #emptySteps = 0;

  constructor(options: RunEpisodeOptions) {
    if (options.selector.needsScores && !options.critic) {
      throw new BoqError(
        'BOQ_INVALID_ARGUMENT',
        `Expected a critic for the selector ${options.selector.name}: give a trained model.`,
      );
    }
    this.#options = options;
  }

  get #signal(): AbortSignal {
    return this.#ended.signal;
  }

  async play(): Promise<EpisodeResult> {
    const { signal, limits } = this.#options;
    const { maxMs } = limits;
    const stop = (): void => this.#ended.abort(signal?.reason);
    signal?.addEventListener('abort', stop);
    const timer = Number.isFinite(maxMs)
      ? setTimeout(() => {
          this.#timedOut = true;
          this.#ended.abort();
        }, maxMs)
      : undefined;
    try {
      return await this.#play();
    } finally {
      clearTimeout(timer);
      signal?.removeEventListener('abort', stop);
      this.#ended.abort();
    }
  }

  async #play(): Promise<EpisodeResult> {
    const { limits, budget, onLimit = 'fail' } = this.#options;
    for (let step = 0; ; step++) {
      this.#requireNotAborted();
      if (this.#timedOut) return this.#endByLimit('time-limit', step);
      const spent = budget?.exhausted() ? 'budget' : null;
      const limit = step >= limits.maxSteps ? 'step-limit' : spent;
      if (limit && (onLimit === 'fail' || this.#history.length === 0)) return this.#endByLimit(limit, step);
      let end: EpisodeResult | null;
      try {
        end = await this.#step(step, limit);
      } catch (error) {
        // Cut off by our own clock: the step is not recorded, as its action may never have happened.
        if (!this.#timedOut || this.#options.signal?.aborted) throw this.#fault(error);
        return this.#endByLimit('time-limit', step);
      }
      if (end) return end;
    }
  }

  /**
   * One step, recorded; a result where it was the last.
   * @param limit set where a limit is met and only an answer counts any more
   */
  async #step(step: number, limit: Outcome | null): Promise<EpisodeResult | null> {
    const { episode, recorder, guard, onEvent, beforeStep, beforeAction, afterStep } = this.#options;
    const clock = new PhaseClock();
    const observation = await episode.environment.observe(this.#signal);
    observation.events.push(...(guard?.observe(observation) ?? []));
    clock.end('observe');
    onEvent?.({ type: 'observed', step, observation });
    if (guard?.isStuck) return this.#endByLimit('stuck', step);
    await beforeStep?.(observation, step);
    const screenshot = recorder.shot(String(step).padStart(3, '0'), observation.screenshot);

    const scoring = this.#beginScoring(observation);
    const proposed = await this.#propose(step, observation, scoring, limit !== null);
    clock.end('propose');
    if (limit && proposed.candidates.length === 0) return this.#endByLimit(limit, step);

    const decided = await this.#decide(step, observation, proposed, scoring, clock);
    const { candidates, selection, scores } = decided;
    onEvent?.({ type: 'decided', step, candidates, scores, selection });
    const chosen = candidates[selection.index]!;
    if (beforeAction && !(await beforeAction(chosen, step))) return this.#endByLimit('budget', step);
    clock.restart();

    guard?.take(chosen.action);
    const { grounding, point, miss, usage } = await this.#ground(chosen.action, observation);
    clock.end('ground');
    const undone = miss ?? (await this.#unconfirmed(chosen.action, point, observation.url, step));
    clock.restart();
    const result = undone ?? (await episode.environment.act(chosen.action, point, this.#signal));
    const verdict = await episode.environment.verdict();
    clock.end('act');

    const record: StepRecord = {
      index: step,
      observation: describe(observation, screenshot),
      candidates,
      candidateErrors: proposed.errors,
      scores,
      selection,
      grounding,
      result,
      usage: [...proposed.usage, ...decided.usage, ...usage],
      timings: clock.phases,
    };
    await recorder.step(record);
    onEvent?.({ type: 'step', step, record });
    await afterStep?.(record);
    const { action, thought, note } = chosen;
    this.#history.push({ action, thought, note, result, screenshot: observation.screenshot });
    return this.#endAfter(step + 1, chosen.action, verdict);
  }

  /** The state's embedding starts here, while the policy has not even been asked. */
  #beginScoring(observation: Observation): StepScoring | null {
    const { episode, selector, critic } = this.#options;
    if (!selector.needsScores || !critic) return null;
    return critic.begin({
      instruction: episode.instruction,
      history: [...this.#history],
      screenshot: observation.screenshot,
      signal: this.#signal,
    });
  }

  /** @param mustAnswer only answers are taken, as a limit is met */
  async #propose(
    step: number,
    observation: Observation,
    scoring: StepScoring | null,
    mustAnswer: boolean,
  ): Promise<Proposed> {
    const { episode, proposer, selector, n, random, onEvent } = this.#options;
    const distinct = new DistinctCandidates();
    const proposed: Proposed = { candidates: [], distinct, errors: [], usage: [] };
    const events = proposer.propose({
      instruction: episode.instruction,
      history: [...this.#history],
      observation,
      n: selector.candidateCount(n),
      ...(mustAnswer ? { mustAnswer } : {}),
      random: random(step, 'propose'),
      signal: this.#signal,
    });
    for await (const event of events) {
      if (event.type === 'usage') {
        proposed.usage.push(event.usage);
        this.#spend([event.usage]);
      } else if (event.type === 'error') {
        proposed.errors.push(event.error);
        onEvent?.({ type: 'candidate-error', step, error: event.error });
      } else {
        const { candidate } = event;
        if (mustAnswer && candidate.action.type !== 'answer') continue;
        onEvent?.({ type: 'candidate', step, index: proposed.candidates.length, candidate });
        proposed.candidates.push(candidate);
        if (distinct.add(candidate)) scoring?.add(candidate);
      }
    }
    return proposed;
  }

  async #decide(
    step: number,
    observation: Observation,
    { candidates, distinct, errors }: Proposed,
    scoring: StepScoring | null,
    clock: PhaseClock,
  ): Promise<{ candidates: Candidate[]; scores: StepScores | null; selection: Selection; usage: Usage[] }> {
    const { episode, selector, random } = this.#options;
    if (candidates.length === 0) {
      this.#emptySteps++;
      const fault = errors[0] ? `: ${errors[0].message}` : '';
      const selection = { selector: selector.name, index: 0, reason: `no valid candidate${fault}; waited` };
      return { candidates: [waiting], scores: null, selection, usage: [] };
    }
    this.#emptySteps = 0;
    const scored = scoring ? await this.#charged(scoring.scores()) : null;
    const scores = scored ? distinct.spreadOut(scored) : null;
    clock.end('score');
    const decision = selector.select({
      instruction: episode.instruction,
      candidates,
      scores,
      random: random(step, 'select'),
      history: [...this.#history],
      screenshot: observation.screenshot,
      signal: this.#signal,
    });
    const { usage = [], ...selection } = await this.#charged(decision);
    clock.end('select');
    if (!(selection.index in candidates)) {
      throw new BoqError(
        'BOQ_INVALID_ARGUMENT',
        `Expected the selector ${selector.name} to choose one of ${candidates.length} candidates, it chose ` +
          `index ${selection.index}.`,
      );
    }
    return { candidates, scores, selection, usage: [...(scored?.usage ?? []), ...usage] };
  }

  async #ground(
    action: Action,
    observation: Observation,
  ): Promise<{
    grounding: Grounding | null;
    point: Grounding['point'] | null;
    miss: StepRecord['result'] | null;
    usage: Usage[];
  }> {
    const description = action['element'];
    if (typeof description !== 'string') return { grounding: null, point: null, miss: null, usage: [] };
    const { localizer } = this.#options;
    const found = await this.#charged(localizer.locate(description, observation, this.#signal));
    const { usage = [] } = found;
    if (!found.found)
      return { grounding: null, point: null, miss: { ok: false, message: found.message }, usage };
    const { point, element } = found;
    return { grounding: { localizer: localizer.name, point, element }, point, miss: null, usage };
  }

  /** The result of an action that was not confirmed; null where it may be done. */
  async #unconfirmed(
    action: Action,
    point: Point | null,
    url: string,
    step: number,
  ): Promise<ActionResult | null> {
    const { confirm, episode } = this.#options;
    const consequence = confirm ? await episode.environment.consequence?.(action, point) : null;
    const kind = irreversibleKind(action, consequence ?? null);
    if (!confirm || !consequence || !kind) return null;
    const target = consequence.words || describeAction(action);
    if (await confirm({ kind, action, target, url, step }, this.#signal)) return null;
    return { ok: false, message: `not done: pressing ${target} was not confirmed, as it may not be undone` };
  }

  #endAfter(steps: number, action: Action, verdict: Verdict | null): EpisodeResult | null {
    const answer = action.type === 'answer' && typeof action['text'] === 'string' ? action['text'] : null;
    const end = { answer, steps, finalObservation: null };
    if (verdict) {
      const reward = verdict.outcome === 'success' ? 1 : 0;
      return { ...end, outcome: verdict.outcome, reward, rawReward: verdict.rawReward };
    }
    if (action.type === 'answer') return { ...end, outcome: 'answered', reward: 0, rawReward: null };
    if (this.#emptySteps >= emptyStepsAllowed) {
      return { ...end, outcome: 'no-answer', reward: 0, rawReward: null };
    }
    return null;
  }

  /** The state after the last action is looked at once more: value estimates may start from it. */
  async #endByLimit(outcome: Outcome, steps: number): Promise<EpisodeResult> {
    const { episode, recorder, signal } = this.#options;
    const observation = await episode.environment.observe(signal);
    const finalObservation = describe(observation, recorder.shot('final', observation.screenshot));
    return { outcome, reward: 0, rawReward: null, answer: null, steps, finalObservation };
  }

  /** Charges the budget for calls of a model as soon as they end, for those that failed too. */
  async #charged<T extends { usage?: Usage[] }>(calls: T | Promise<T>): Promise<T> {
    try {
      const result = await calls;
      this.#spend(result.usage ?? []);
      return result;
    } catch (error) {
      this.#spend(usageOf(error));
      throw error;
    }
  }

  #spend(usage: readonly Usage[]): void {
    for (const one of usage) this.#options.budget?.add(one);
  }

  #requireNotAborted(): void {
    if (this.#options.signal?.aborted) throw this.#fault(this.#options.signal.reason);
  }

  /** One code for every way in which an abort surfaces; other errors as they are. */
  #fault(error: unknown): unknown {
    if (!this.#options.signal?.aborted) return error;
    if (error instanceof BoqError && error.code === 'BOQ_ABORTED') return error;
    return new BoqError('BOQ_ABORTED', 'The episode was stopped by its caller.', { cause: error });
  }
}

function describe(observation: Observation, screenshot: string): ObservationRecord {
  const { url, title, viewport, scroll, events } = observation;
  return { url, title, viewport, scroll: { x: scroll.x, y: scroll.y }, screenshot, events };
}
