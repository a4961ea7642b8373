import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { runCommand } from './command.js';
import { readRecord, removeRecord, signature, writeRecord } from './record.js';

const inputs = ['package.json', 'package-lock.json'];

export const packages = {
  name: 'packages',
  title: 'npm packages, as locked',
  needs: [],
  isComplete(context) {
    return (
      readRecord(context, 'packages')?.signature === signature(context.root, inputs) &&
      existsSync(join(context.root, 'node_modules/.package-lock.json'))
    );
  },
  async run(context) {
    const before = signature(context.root, inputs);
    removeRecord(context, 'packages');
    // Scripts stay off: our own would start this set-up again, and no dependency needs one.
    const args = ['ci', '--ignore-scripts', '--no-audit', '--no-fund'];
    await runCommand(context, 'packages', 'npm', args, {
      advice:
        'npm could not install the packages: check the network or registry, then run `node scripts/setup.js` again.',
    });
    writeRecord(context, 'packages', { signature: before });
  },
};
