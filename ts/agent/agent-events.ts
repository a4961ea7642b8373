/** The agent as a stream: what happens in an episode, event by event, for `for await`. */
import type { EpisodeEvent } from './episode.js';
import { type AgentOptions, type AgentSummary, runAgent } from './run-agent.js';

/**
 * Runs the agent and yields each event as it happens. Leaving the loop early stops the agent and closes its browser.
 * @returns the summary, as the generator's return value
 * @throws as {@link runAgent}
 */
export async function* agentEvents(
  options: Omit<AgentOptions, 'onEvent'>,
): AsyncGenerator<EpisodeEvent, AgentSummary, undefined> {
  const stop = new AbortController();
  const abort = (): void => stop.abort(options.signal?.reason);
  options.signal?.addEventListener('abort', abort);
  if (options.signal?.aborted) abort();

  const waiting: EpisodeEvent[] = [];
  let wake: () => void = () => {};
  let isOver = false;
  const running = runAgent({
    ...options,
    signal: stop.signal,
    onEvent: (event) => {
      waiting.push(event);
      wake();
    },
  }).finally(() => {
    isOver = true;
    wake();
  });
  // A failure is thrown to the reader below; until the reader is there it must not count as unhandled.
  running.catch(() => undefined);
  try {
    while (true) {
      yield* waiting.splice(0);
      if (isOver && waiting.length === 0) return await running;
      await new Promise<void>((resolve) => {
        wake = resolve;
        if (isOver || waiting.length > 0) resolve();
      });
    }
  } finally {
    options.signal?.removeEventListener('abort', abort);
    stop.abort();
    await running.catch(() => undefined);
  }
}
