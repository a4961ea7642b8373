import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import {
  bytesView,
  readSafetensors,
  safetensorsHeader,
  writeSafetensors,
} from '../../../ts/core/safetensors.js';
import { rejection } from '../../support/rejection.js';

describe('safetensors files', () => {
  let folder: string;
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'boq-safetensors-'));
  });
  afterEach(() => rm(folder, { recursive: true }));

  it('have the layout of the format: length, JSON header, data without holes', async () => {
    const path = join(folder, 'a.safetensors');
    const data = bytesView(Float32Array.of(1, -2, 0.5, 4));
    await writeSafetensors(
      path,
      [
        { name: 'x', dtype: 'F32', shape: [2, 2], data },
        { name: 'y', dtype: 'U8', shape: [3], data: Uint8Array.of(7, 8, 9) },
      ],
      { format: 'pt' },
    );
    const bytes = await readFile(path);
    const length = Number(bytes.readBigUInt64LE(0));
    expect((8 + length) % 8).to.equal(0);
    expect(JSON.parse(bytes.subarray(8, 8 + length).toString())).to.deep.equal({
      __metadata__: { format: 'pt' },
      x: { dtype: 'F32', shape: [2, 2], data_offsets: [0, 16] },
      y: { dtype: 'U8', shape: [3], data_offsets: [16, 19] },
    });
    expect(bytes.length).to.equal(8 + length + 19);
    expect(bytes.readFloatLE(8 + length + 4)).to.equal(-2);
    expect(await readdir(folder), 'nothing temporary stays').to.deep.equal(['a.safetensors']);

    const read = await readSafetensors(path);
    expect(new Float32Array(read.get('x')?.data.buffer as ArrayBuffer)[2]).to.equal(0.5);
    expect([...(read.get('y')?.data ?? [])]).to.deep.equal([7, 8, 9]);
  });

  it('refuse data of another size than the shape, and one name twice', async () => {
    const tensor = { name: 'x', dtype: 'F32', shape: [3], data: new Uint8Array(8) } as const;
    const path = join(folder, 'b.safetensors');
    expect((await rejection(writeSafetensors(path, [tensor]))).message).to.contain(
      'x needs 12 bytes for F32 [3], got 8',
    );
    expect(() => safetensorsHeader([tensor, tensor])).to.throw('"x" came twice');
  });

  it('are refused where header and file do not fit together', async () => {
    const path = join(folder, 'c.safetensors');
    const good = Buffer.concat([
      safetensorsHeader([{ name: 'x', dtype: 'U8', shape: [4] }]),
      Buffer.alloc(4),
    ]);
    const cases: Record<string, Buffer> = {
      'at least 8 bytes': good.subarray(0, 5),
      'its header is said to have': Buffer.concat([
        Buffer.from([255, 255, 0, 0, 0, 0, 0, 0]),
        good.subarray(8),
      ]),
      'beyond the file': good.subarray(0, good.length - 1),
      'contradicts itself': Buffer.from(good.toString('latin1').replace('[4]', '[5]'), 'latin1'),
    };
    for (const [message, bytes] of Object.entries(cases)) {
      await writeFile(path, bytes);
      const error = await rejection(readSafetensors(path));
      expect(error.code).to.equal('BOQ_FILE_CORRUPT');
      expect(error.message).to.contain(message);
    }
  });
});
