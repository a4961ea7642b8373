/**
 * Runs a stream ahead of its reader, so that several can be read one after the other while all make progress. What
 * came before a failure is read before the failure is.
 */
export function eager<T>(source: AsyncIterable<T>): AsyncIterable<T> {
  const waiting: T[] = [];
  let isOver = false;
  let wake: () => void = () => {};
  const running = (async () => {
    for await (const item of source) {
      waiting.push(item);
      wake();
    }
  })().finally(() => {
    isOver = true;
    wake();
  });
  // A failure is thrown to the reader; until there is one it must not count as unhandled.
  running.catch(() => undefined);
  return {
    async *[Symbol.asyncIterator]() {
      while (true) {
        yield* waiting.splice(0);
        if (waiting.length > 0) continue;
        if (isOver) return void (await running);
        await new Promise<void>((resolve) => {
          wake = resolve;
        });
      }
    },
  };
}
