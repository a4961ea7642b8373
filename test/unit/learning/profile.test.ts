import { mkdir, mkdtemp, readFile, rm, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import {
  type EmbedderProfile,
  fingerprintOf,
  hashCheckpoint,
  readPixelLimits,
  requireSameFingerprint,
} from '../../../ts/learning/profile.js';
import { rejection } from '../../support/rejection.js';

const profile: EmbedderProfile = {
  model: 'abc',
  template: 'boq-1',
  actionView: 'whole',
  pooling: 'mean',
  l2: false,
  hiddenLayer: -1,
  minPixels: 3136,
  maxPixels: 1003520,
  imageProcessor: 'torchvision',
  dtype: 'float32',
};

describe('the embedder profile', () => {
  let folder: string;
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'boq-profile-'));
  });
  afterEach(() => rm(folder, { recursive: true }));

  it('has a fingerprint that every setting changes, and the order of fields does not', () => {
    const reversed = Object.fromEntries(Object.entries(profile).reverse()) as unknown as EmbedderProfile;
    expect(fingerprintOf(reversed))
      .to.equal(fingerprintOf(profile))
      .and.to.match(/^[0-9a-f]{16}$/);
    const changed = Object.entries(profile).map(([name, value]) => {
      const other = typeof value === 'boolean' ? !value : typeof value === 'number' ? value + 1 : `${value}x`;
      return fingerprintOf({ ...profile, [name]: other } as EmbedderProfile);
    });
    expect(new Set([fingerprintOf(profile), ...changed]).size).to.equal(Object.keys(profile).length + 1);
  });

  it('names both sides where two fingerprints meet', () => {
    const a = { what: 'runs/a', fingerprint: '1111' };
    requireSameFingerprint(a, { what: 'runs/b', fingerprint: '1111' });
    expect(() => requireSameFingerprint(a, { what: 'runs/b', fingerprint: '2222' }))
      .to.throw(/runs\/a has fingerprint 1111 and runs\/b has 2222/)
      .with.property('code', 'BOQ_FINGERPRINT_MISMATCH');
  });

  it('reads pixel limits in both spellings, with the reference defaults where there is no file', async () => {
    expect(await readPixelLimits(folder)).to.deep.equal({ minPixels: 3136, maxPixels: 1003520 });
    const path = join(folder, 'preprocessor_config.json');
    await writeFile(path, '{"min_pixels": 10, "max_pixels": 20}');
    expect(await readPixelLimits(folder)).to.deep.equal({ minPixels: 10, maxPixels: 20 });
    await writeFile(path, '{"size": {"shortest_edge": 30, "longest_edge": 40}}');
    expect(await readPixelLimits(folder)).to.deep.equal({ minPixels: 30, maxPixels: 40 });
    await writeFile(path, '{"min_pixels": 50, "max_pixels": 20}');
    expect((await rejection(readPixelLimits(folder))).code).to.equal('BOQ_CONFIG_INVALID');
    await writeFile(path, 'min');
    expect((await rejection(readPixelLimits(folder))).code).to.equal('BOQ_FILE_CORRUPT');
  });

  it('hashes what is in a checkpoint, and remembers files that did not change', async () => {
    const cache = join(folder, 'cache', 'hashes.json');
    const model = join(folder, 'model');
    await mkdir(model);
    const write = (name: string, text: string) => writeFile(join(model, name), text);
    expect((await rejection(hashCheckpoint(model, cache))).message).to.contain('no .safetensors');
    await write('config.json', '{}');
    await write('model.safetensors', 'weights');
    expect((await rejection(hashCheckpoint(model, cache))).message).to.contain('tokenizer.json');
    await write('tokenizer.json', '{}');
    const first = await hashCheckpoint(model, cache);

    const known = JSON.parse(await readFile(cache, 'utf8')) as Record<string, string>;
    expect(Object.keys(known)).to.have.length(3);
    const forged = Object.fromEntries(Object.keys(known).map((key) => [key, 'from the cache']));
    await writeFile(cache, JSON.stringify(forged));
    expect(await hashCheckpoint(model, cache), 'read from the cache').not.to.equal(first);
    await utimes(join(model, 'model.safetensors'), 1, 1);
    await utimes(join(model, 'config.json'), 1, 1);
    await utimes(join(model, 'tokenizer.json'), 1, 1);
    expect(await hashCheckpoint(model, cache), 'a new time means hashing again').to.equal(first);
    await write('model.safetensors', 'weightz');
    expect(await hashCheckpoint(model, cache)).not.to.equal(first);
  });
});
