import { existsSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { runCommand } from './command.js';
import { readRecord, removeRecord, signature, writeRecord } from './record.js';

const inputs = ['ts', 'tsconfig.json', 'tsconfig.build.json', 'package-lock.json'];

export const typescript = {
  name: 'typescript',
  title: 'TypeScript to dist/',
  needs: [],
  isComplete(context) {
    return (
      readRecord(context, 'typescript')?.signature === signature(context.root, inputs) &&
      existsSync(join(context.root, 'dist'))
    );
  },
  async run(context) {
    const before = signature(context.root, inputs);
    removeRecord(context, 'typescript');
    const dist = join(context.root, 'dist');
    const fresh = `${dist}.tmp`;
    rmSync(fresh, { recursive: true, force: true });
    const args = ['node_modules/typescript/bin/tsc', '-p', 'tsconfig.build.json', '--outDir', fresh];
    await runCommand(context, 'typescript', process.execPath, args);
    rmSync(dist, { recursive: true, force: true });
    renameSync(fresh, dist);
    writeRecord(context, 'typescript', { signature: before });
  },
};
