/** embed.js: recorded runs in, embedding folders out. */
import { Option } from 'commander';
import { type EmbedRunResult, embedRun } from '../learning/embed-run.js';
import { Embedder, type EmbedderOptions } from '../learning/embedder.js';
import { openRunSource } from '../learning/run-source.js';
import { type ActionView, actionViews } from '../learning/templates.js';
import { findCheckpoint } from './checkpoint.js';
import { integerOption, runCommand } from './command.js';
import { addCacheOptions, type CacheFlags, openCache } from './embedding-cache.js';
import { startProgress } from './progress.js';

interface EmbedFlags extends CacheFlags {
  embedder?: string;
  device: string;
  dtype: NonNullable<EmbedderOptions['dtype']>;
  pooling: NonNullable<EmbedderOptions['pooling']>;
  actionView: ActionView;
  l2?: boolean;
  hiddenLayer: number;
  minPixels?: number;
  maxPixels?: number;
  storage: 'float32' | 'bfloat16';
  batch: number;
  json?: boolean;
}

export function main(argv: readonly string[]): Promise<number> {
  return runCommand(
    'embed',
    'Embeds every state, candidate and task of recorded runs with a frozen vision-language model.',
    (command, { print, say, signal }) => {
      command
        .argument('<runs...>', 'run folders, as collect.js writes them')
        .option(
          '--embedder <checkpoint>',
          'checkpoint folder or Hugging Face id (default: the built-in random one)',
        )
        .option('--device <device>', 'auto, cpu or cuda:N', 'auto')
        .option('--dtype <type>', 'auto, float32 or bfloat16', 'auto')
        .option('--pooling <rule>', 'mean, last, text-mean or image-mean', 'mean')
        .addOption(
          new Option('--action-view <what>', 'what of an action is read: all, or its type and thought alone')
            .choices([...actionViews])
            .default('whole'),
        )
        .option('--l2', 'scale every vector to length 1')
        .option('--hidden-layer <k>', 'output of layer k; -1: after the final norm', integerOption(-1), -1)
        .option('--min-pixels <n>', 'smallest image area after scaling', integerOption(1))
        .option('--max-pixels <n>', 'largest image area after scaling', integerOption(1))
        .option('--storage <type>', 'element type of the stored rows: float32 or bfloat16', 'float32')
        .option('--batch <n>', 'sequences in one native call', integerOption(1), 128)
        .option('--json', 'print the results as JSON');
      addCacheOptions(command).action(async (runs: string[], flags: EmbedFlags) => {
        const sources = await Promise.all(runs.map(openRunSource));
        const path = await findCheckpoint(flags.embedder);
        await using cache = await openCache(flags);
        await using embedder = await Embedder.load({
          path,
          ...(cache === null ? {} : { cache }),
          device: flags.device,
          dtype: flags.dtype,
          pooling: flags.pooling,
          actionView: flags.actionView,
          l2: flags.l2 ?? false,
          hiddenLayer: flags.hiddenLayer,
          ...(flags.minPixels === undefined ? {} : { minPixels: flags.minPixels }),
          ...(flags.maxPixels === undefined ? {} : { maxPixels: flags.maxPixels }),
        });
        const { info, fingerprint } = embedder;
        say(
          `Embedder ${path}: width ${info.width}, ${info.dtype} on ${info.device}, fingerprint ${fingerprint}.`,
        );
        const results: EmbedRunResult[] = [];
        for (const source of sources) {
          const bar = startProgress(`Embedding ${source.folder.split('/').at(-1)}`, 0);
          try {
            const result = await embedRun(source, embedder, {
              storage: flags.storage,
              batchSize: flags.batch,
              signal,
              onProgress: ({ steps, totalSteps, embedded, cached, reused, embeddedPerSecond }) => {
                bar.setTotal(totalSteps);
                bar.update(
                  steps,
                  `${embedded} embedded, ${cached} cached, ${reused} repeated, ${Math.round(embeddedPerSecond)}/s`,
                );
              },
            });
            results.push(result);
          } finally {
            bar.stop();
          }
        }
        for (const result of results) {
          const { manifest, seconds, folder, changed } = result;
          if (flags.json) {
            print(
              JSON.stringify({
                folder,
                changed,
                seconds,
                embedded: result.embedded,
                cached: result.cached,
                reused: result.reused,
                manifest,
              }),
            );
            continue;
          }
          const { state, action, task } = manifest.streams;
          say(
            changed
              ? `${manifest.episodes} episodes: ${state.rows} states, ${action.rows} actions, ${task.rows} tasks; ` +
                  `${result.embedded} embedded and ${result.cached} from the cache in ${seconds.toFixed(1)} s.`
              : 'Embedded already.',
          );
          print(folder);
        }
      });
    },
    argv,
  );
}
