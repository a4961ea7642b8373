/**
 * What an episode costs, counted the same way for every method: candidates asked for, actions carried out (those of
 * attempts and replays included), embeddings, and how often the task instance was begun.
 */
import { createHash } from 'node:crypto';
import type { EpisodeCosts } from '../../store/types.js';
import type { Critic, Environment, Episode, Proposer } from '../types.js';

export class Meter {
  readonly costs: EpisodeCosts = { proposals: 0, steps: 0, embeddings: 0, starts: 0 };
  /** Contents embedded so far: an embedder with a cache does each once. */
  readonly #embedded = new Set<string>();

  proposer(inner: Proposer): Proposer {
    const { costs } = this;
    return {
      name: inner.name,
      async *propose(request) {
        for await (const event of inner.propose(request)) {
          if (event.type !== 'usage') costs.proposals++;
          yield event;
        }
      },
    };
  }

  episode(inner: Episode): Episode {
    this.costs.starts++;
    const { environment } = inner;
    const counted: Environment = {
      observe: (signal) => environment.observe(signal),
      act: (action, point, signal) => {
        this.costs.steps++;
        return environment.act(action, point, signal);
      },
      verdict: () => environment.verdict(),
    };
    return { ...inner, environment: counted };
  }

  critic(inner: Critic): Critic {
    if (inner.embeds === false) return inner;
    return {
      ...(inner.chance ? { chance: (q: number) => inner.chance!(q) } : {}),
      begin: (state) => {
        const { instruction, history, screenshot } = state;
        this.#embed('task', instruction);
        this.#embed('state', JSON.stringify([instruction, history]), screenshot.bytes);
        const scoring = inner.begin(state);
        return {
          add: (candidate) => {
            this.#embed('action', JSON.stringify(candidate));
            scoring.add(candidate);
          },
          scores: () => scoring.scores(),
        };
      },
    };
  }

  #embed(stream: string, text: string, bytes?: Uint8Array): void {
    const hash = createHash('sha256').update(stream).update('\0').update(text);
    if (bytes) hash.update(bytes);
    const key = hash.digest('base64');
    if (this.#embedded.has(key)) return;
    this.#embedded.add(key);
    this.costs.embeddings++;
  }
}
