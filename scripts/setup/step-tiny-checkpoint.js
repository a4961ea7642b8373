import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { readRecord, writeRecord } from './record.js';

const folder = 'models/tiny';

/** A checkpoint with the real layout and random weights: everything runs offline with it. */
export const tinyCheckpoint = {
  name: 'tiny-checkpoint',
  title: 'the tiny checkpoint',
  needs: [],
  isComplete: (context) =>
    readRecord(context, 'tiny-checkpoint') !== undefined &&
    existsSync(join(context.root, folder, 'config.json')),
  async run(context) {
    const { writeTinyCheckpoint } = await import(
      new URL('../../dist/learning/tiny-checkpoint.js', import.meta.url).href
    );
    await writeTinyCheckpoint(join(context.root, folder));
    writeRecord(context, 'tiny-checkpoint', { folder });
  },
};
