/** pull.js: a checkpoint from the Hugging Face hub into the standard cache. */

import { pullCheckpoint } from '../learning/hub.js';
import { runCommand } from './command.js';
import { startProgress } from './progress.js';

const megabyte = 1e6;

export function main(argv: readonly string[]): Promise<number> {
  return runCommand(
    'pull',
    'Fetches a Qwen2.5-VL checkpoint into the Hugging Face cache, which Python programs share.',
    (command, { print, say, signal }) => {
      command
        .argument('<id>', 'hub id, e.g. Qwen/Qwen2.5-VL-3B-Instruct')
        .option('--revision <name>', 'branch, tag or commit', 'main')
        .option('--json', 'print the result as JSON')
        .addHelpText(
          'after',
          '\nHonours HF_HOME, HF_HUB_CACHE, HF_TOKEN, HF_ENDPOINT and HF_HUB_OFFLINE. Interrupted, it goes on where it ended.',
        )
        .action(async (id: string, flags: { revision: string; json?: boolean }) => {
          const bar = startProgress('Fetching (MB)', 0);
          try {
            const result = await pullCheckpoint(id, {
              revision: flags.revision,
              signal,
              onPlan: ({ commit, license, files, totalBytes, presentBytes }) => {
                say(
                  `${id} at ${commit.slice(0, 12)}: ${files} files, ${(totalBytes / 1e9).toFixed(2)} GB, ` +
                    `${(presentBytes / 1e9).toFixed(2)} GB here already. Licence: ${license ?? 'not stated'}.`,
                );
              },
              onProgress: ({ bytes, totalBytes }) => {
                bar.setTotal(Math.round(totalBytes / megabyte));
                bar.update(Math.round(bytes / megabyte));
              },
            });
            bar.stop();
            print(flags.json ? JSON.stringify(result) : result.folder);
          } finally {
            bar.stop();
          }
        });
    },
    argv,
  );
}
