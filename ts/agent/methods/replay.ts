/** Coming back to a state by beginning again and doing the same: with a signature that tells whether it worked. */
import { createHash } from 'node:crypto';
import type { Candidate, Usage } from '../../store/types.js';
import type { Observation, Proposer, Selector } from '../types.js';

/**
 * What a page looks like to the agent, as a hash: address, scrolling, and its elements with their values and places.
 * Pictures are left out, since a blinking caret is no other state, and so are queries that look like time stamps.
 */
export function stateSignature({ url, title, scroll, elements }: Observation): string {
  const parts = elements.map(({ role, name, value, checked, selected, expanded, disabled, focused, box }) => [
    ...[role, name, value, checked, selected, expanded, disabled, focused],
    ...[box.x, box.y, box.width, box.height].map(Math.round),
  ]);
  return createHash('sha256')
    .update(JSON.stringify([plainUrl(url), title, Math.round(scroll.x), Math.round(scroll.y), parts]))
    .digest('base64')
    .slice(0, 22);
}

/** Without parameters that hold long numbers or hashes: they change from visit to visit. */
function plainUrl(url: string): string {
  const [path = '', query = ''] = url.split('?', 2);
  const kept = query.split('&').filter((part) => part !== '' && !/=(\d{9,}|[0-9a-f-]{16,})$/i.test(part));
  return kept.length > 0 ? `${path}?${kept.join('&')}` : path;
}

/** One step to be done again: what was offered, what is taken of it, and the state in which that was. */
export interface ReplayStep {
  candidates: readonly Candidate[];
  index: number;
  /** null where any state will do. */
  signature: string | null;
  /** What finding this step cost; recorded with it. */
  usage?: readonly Usage[];
}

export interface Replay {
  proposer: Proposer;
  selector: Selector;
  /** Step at which the state was not the expected one; null while all went as before. */
  readonly lostAt: number | null;
  /** Signatures of the states met, in order. */
  readonly signatures: readonly string[];
}

/**
 * Policy and selector that first do `script` again and then go on as `proposer` and `selector`. Where a state differs
 * from the one recorded the script is left, and the policy is asked: what follows is an ordinary episode.
 */
export function replayThen(script: readonly ReplayStep[], proposer: Proposer, selector: Selector): Replay {
  const signatures: string[] = [];
  let lostAt: number | null = null;
  const scriptedAt = (step: number): ReplayStep | null =>
    lostAt === null || step < lostAt ? (script[step] ?? null) : null;
  return {
    get lostAt() {
      return lostAt;
    },
    signatures,
    proposer: {
      name: proposer.name,
      async *propose(request) {
        const step = request.history.length;
        const signature = stateSignature(request.observation);
        signatures[step] = signature;
        const expected = script[step]?.signature ?? null;
        if (lostAt === null && expected !== null && expected !== signature) lostAt = step;
        const scripted = scriptedAt(step);
        if (!scripted) {
          yield* proposer.propose({ ...request, n: selector.candidateCount(request.n) });
          return;
        }
        for (const usage of scripted.usage ?? []) yield { type: 'usage', usage };
        for (const candidate of scripted.candidates) yield { type: 'candidate', candidate };
      },
    },
    selector: {
      name: selector.name,
      needsScores: selector.needsScores,
      // The script offers what was offered then; the policy behind it is asked for as many as the selector wants.
      candidateCount: (n) => n,
      select: async (request) => {
        const step = request.history.length;
        const signature = signatures[step] ?? '';
        const scripted = scriptedAt(step);
        if (!scripted) {
          const decision = await selector.select(request);
          return { ...decision, evidence: { ...decision.evidence, signature } };
        }
        const isLast = step === script.length - 1;
        const reason = isLast ? 'branched off here' : 'done again';
        return {
          selector: selector.name,
          index: scripted.index,
          reason,
          evidence: { replayed: !isLast, signature },
        };
      },
    },
  };
}
