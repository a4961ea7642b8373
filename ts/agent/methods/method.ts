/**
 * How an episode is played and decided: a selector, and rules around it. Selectors see the candidates of one step;
 * a rule may change what is proposed, what a score means, or play the same task instance several times.
 */
import type { Action } from '../../store/types.js';
import type { EpisodeResult, RunEpisodeOptions } from '../episode.js';
import { runEpisode } from '../loop.js';
import type { Critic, Episode, ProposalEvent, Proposer, Selector } from '../types.js';

export interface Method {
  /** Goes into the episode key: selector and rules, with every setting that changes behaviour. */
  readonly name: string;
  readonly needsScores: boolean;
  /** Each decision stands in the record of its step, and nothing but the candidates' scores decides. */
  readonly isStepwise: boolean;
  play(context: PlayContext): Promise<EpisodeResult>;
}

/** One task instance and all that plays it. */
export interface PlayContext extends Omit<RunEpisodeOptions, 'selector'> {
  /** Begins the same instance anew; the episode before it is over. */
  reset(): Promise<Episode>;
}

/** What a rule knows when an episode begins. */
export interface RuleContext {
  critic: Critic | null;
}

export type Player = (context: PlayContext, selector: Selector) => Promise<EpisodeResult>;

/** One small change to how episodes are played. Each part that is there wraps what was there before. */
export interface Rule {
  readonly name: string;
  readonly needsScores: boolean;
  /** A proposer for one episode. */
  proposer?(inner: Proposer, context: RuleContext): Proposer;
  critic?(inner: Critic): Critic;
  player?(inner: Player): Player;
}

/** Plays `selector` under `rules`, the first one innermost. */
export function methodOf(selector: Selector, rules: readonly Rule[]): Method {
  const needsScores = selector.needsScores || rules.some((rule) => rule.needsScores);
  const innermost: Player = (context, chosen) => {
    const critic =
      context.critic && rules.reduce((inner, rule) => rule.critic?.(inner) ?? inner, context.critic);
    const ruleContext: RuleContext = { critic };
    const proposer = rules.reduce(
      (inner, rule) => rule.proposer?.(inner, ruleContext) ?? inner,
      context.proposer,
    );
    return runEpisode({ ...context, proposer, critic, selector: chosen });
  };
  const player = rules.reduce((inner, rule) => rule.player?.(inner) ?? inner, innermost);
  return {
    name: [selector.name, ...rules.map((rule) => rule.name)].join('+'),
    needsScores,
    isStepwise: rules.every((rule) => rule.player === undefined),
    play: (context) => player(context, selector),
  };
}

/** The same selector, made to have scores at hand, so that an attempt can be judged by them. */
export function scored(selector: Selector): Selector {
  return selector.needsScores ? selector : { ...selector, needsScores: true };
}

/** Hands on what is proposed; returns the {@link actionKey} of every candidate. */
export async function* passOn(
  events: AsyncIterable<ProposalEvent>,
): AsyncGenerator<ProposalEvent, Set<string>> {
  const known = new Set<string>();
  for await (const event of events) {
    if (event.type === 'candidate') known.add(actionKey(event.candidate.action));
    yield event;
  }
  return known;
}

/** Equal for equal actions, whatever the order of their arguments. */
export function actionKey(action: Action): string {
  return JSON.stringify(Object.entries(action).sort(([a], [b]) => (a < b ? -1 : 1)));
}
