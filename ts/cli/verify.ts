/** verify.js: our embedder beside transformers on one checkpoint. */

import { fileURLToPath } from 'node:url';
import Table from 'cli-table3';
import { Embedder } from '../learning/embedder.js';
import { pythonReference, verify, verifyLimits } from '../learning/verify.js';
import { buildInfo } from '../native/load.js';
import { findCheckpoint } from './checkpoint.js';
import { exitCodes, runCommand } from './command.js';

interface VerifyFlags {
  device: string;
  dtype: 'auto' | 'float32' | 'bfloat16';
  maxPixels?: number;
  python: string;
  json?: boolean;
}

const script = fileURLToPath(new URL('../../scripts/lib/verify_reference.py', import.meta.url));

export async function main(argv: readonly string[]): Promise<number> {
  let failed = false;
  const code = await runCommand(
    'verify',
    'Compares token ids and embeddings of a checkpoint with Hugging Face transformers.',
    (command, { print, say, signal }) => {
      command
        .argument('[checkpoint]', 'checkpoint folder or Hugging Face id (default: the built-in random one)')
        .option('--device <device>', 'auto, cpu or cuda:N', 'auto')
        .option('--dtype <type>', 'auto, float32 or bfloat16', 'auto')
        .option(
          '--python <path>',
          'a Python with torch, torchvision, transformers, safetensors',
          process.env.BOQ_PYTHON ?? 'python3',
        )
        .option('--json', 'print the result as JSON')
        .action(async (name: string | undefined, flags: VerifyFlags) => {
          await using embedder = await Embedder.load({
            path: await findCheckpoint(name),
            device: flags.device,
            dtype: flags.dtype,
          });
          say(`Ours: ${embedder.info.dtype} on ${embedder.info.device}. Running the reference ...`);
          const reference = pythonReference(flags.python, script, {
            signal,
            onLine: (line) => say(`  ${line}`),
          });
          const result = await verify(embedder, reference, buildInfo().threads);
          failed = !result.passed;
          if (flags.json) {
            print(JSON.stringify(result));
            return;
          }
          const table = new Table({
            style: { head: [], border: [] },
            head: ['case', 'tokens', 'ids', 'relative L2', 'cosine', ''],
          });
          for (const { name, tokens, firstDifferentId, relativeL2, cosine, passed } of result.outcomes) {
            const ids = firstDifferentId === null ? 'equal' : `differ from ${firstDifferentId}`;
            table.push([
              name,
              tokens,
              ids,
              relativeL2.toExponential(2),
              cosine.toFixed(7),
              passed ? 'ok' : 'FAILED',
            ]);
          }
          print(table.toString());
          const limit =
            result.dtype === 'float32'
              ? `relative L2 up to ${verifyLimits.float32}`
              : `cosine from ${verifyLimits.bfloat16}`;
          say(
            `${result.passed ? 'Equal' : 'NOT equal'} to ${result.reference} within ${limit} (${result.dtype}).`,
          );
        });
    },
    argv,
  );
  return code === exitCodes.done && failed ? exitCodes.failed : code;
}
