import type { Candidate } from '../../../store/types.js';
import type { Proposer } from '../../types.js';
import { actionKey, passOn, type Rule } from '../method.js';

/**
 * Backtracking on a drop of V: where V lies more than `drop` below its highest value of the episode, going back (if
 * the address has changed since) and beginning again join the candidates, and the selector decides as ever.
 * @param drop at least 0, in units of V
 */
export function backtrack(drop: number): Rule {
  return {
    name: `backtrack@drop=${drop}`,
    needsScores: true,
    proposer: (inner, { critic }): Proposer => {
      let best = { v: Number.NEGATIVE_INFINITY, url: '' };
      return {
        name: inner.name,
        async *propose(request) {
          const known = yield* passOn(inner.propose(request));
          if (!critic) return;
          const { instruction, history, observation, signal } = request;
          const { v } = await critic
            .begin({
              instruction,
              history,
              screenshot: observation.screenshot,
              ...(signal ? { signal } : {}),
            })
            .scores();
          const fell = v < best.v - drop;
          const moved = best.url !== observation.url;
          if (v > best.v) best = { v, url: observation.url };
          if (!fell) return;
          const ways: Candidate[] = [
            ...(moved ? [way('go_back', 'going back to where it looked better')] : []),
            way('restart', 'beginning again from where it looked better'),
          ];
          for (const candidate of ways) {
            if (!known.has(actionKey(candidate.action))) yield { type: 'candidate', candidate };
          }
        },
      };
    },
  };
}

function way(type: string, thought: string): Candidate {
  return { action: { type }, thought, note: '' };
}
