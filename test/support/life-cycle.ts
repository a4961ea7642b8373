/** Ends this process in the way its argument names, while the addon is at some point of its life. */
import { buildInfo } from '../../ts/native/load.js';
import { loadTiny, textItems } from './native.js';

const busy = textItems(20_000);

const endings: Record<string, () => Promise<void>> = {
  'after-load': async () => {
    buildInfo();
  },
  'after-embed': async () => {
    const embedder = await loadTiny();
    await embedder.embed(textItems(1));
  },
  'after-dispose': async () => {
    const embedder = await loadTiny();
    await embedder.embed(textItems(1));
    await embedder.dispose();
  },
  'awaiting-nothing': async () => {
    const embedder = await loadTiny();
    void embedder.embed(textItems(20));
  },
  'exit-in-job': async () => {
    const embedder = await loadTiny();
    void embedder.embed(busy);
    void embedder.embed(busy);
    setImmediate(() => process.exit(7));
  },
  'exit-in-load': async () => {
    void loadTiny();
    setImmediate(() => process.exit(8));
  },
  'throw-in-job': async () => {
    const embedder = await loadTiny();
    void embedder.embed(busy);
    setImmediate(() => {
      throw new Error('thrown on purpose');
    });
  },
  'terminate-in-job': async () => {
    const embedder = await loadTiny();
    void embedder.embed(busy);
    setImmediate(() => process.kill(process.pid, 'SIGTERM'));
  },
};

await endings[process.argv[2] ?? '']?.();
