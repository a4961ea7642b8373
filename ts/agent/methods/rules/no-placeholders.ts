import type { Proposer } from '../../types.js';
import type { Rule } from '../method.js';

const placeholders: ReadonlySet<string> = new Set(['wait', 'refresh', 'restart']);

/**
 * Leaves out candidates that only pass the time, which larger N brings in (wait, refresh, restart), and asks for
 * others in their place. Where nothing else is offered, they stay.
 */
export function noPlaceholders(): Rule {
  return {
    name: 'no-placeholders',
    needsScores: false,
    proposer: (inner): Proposer => ({
      name: inner.name,
      async *propose(request) {
        const held: Parameters<typeof isPlaceholder>[0][] = [];
        let offered = 0;
        for await (const event of inner.propose({ ...request, n: request.n + placeholders.size })) {
          if (event.type !== 'candidate') yield event;
          else if (isPlaceholder(event.candidate)) held.push(event.candidate);
          else if (offered < request.n) {
            offered++;
            yield event;
          }
        }
        if (offered > 0) return;
        for (const candidate of held.slice(0, request.n)) yield { type: 'candidate', candidate };
      },
    }),
  };
}

function isPlaceholder({ action }: { action: { type: string }; thought: string; note: string }): boolean {
  return placeholders.has(action.type);
}
