import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { checkpointName, hubCacheFolder, resolveCheckpoint } from '../../../ts/learning/checkpoints.js';
import { rejection } from '../../support/rejection.js';

describe('checkpoint names', () => {
  let base: string;
  beforeEach(async () => {
    base = await mkdtemp(join(tmpdir(), 'boq-hub-'));
  });
  afterEach(() => rm(base, { recursive: true }));

  it('follow the variables of the Hugging Face libraries', () => {
    expect(hubCacheFolder({ HF_HUB_CACHE: '/a', HF_HOME: '/b' })).to.equal('/a');
    expect(hubCacheFolder({ HF_HOME: '/b' })).to.equal('/b/hub');
    expect(hubCacheFolder({ XDG_CACHE_HOME: '/c' })).to.equal('/c/huggingface/hub');
  });

  it('mean a folder, or the main revision in the cache', async () => {
    const env = { HF_HUB_CACHE: base };
    const snapshots = join(base, 'models--org--name', 'snapshots');
    for (const revision of ['aaa', 'bbb']) {
      await mkdir(join(snapshots, revision), { recursive: true });
      await writeFile(join(snapshots, revision, 'config.json'), '{}');
    }
    await mkdir(join(base, 'models--org--name', 'refs'));
    await writeFile(join(base, 'models--org--name', 'refs', 'main'), 'bbb');
    expect(await resolveCheckpoint('org/name', env)).to.equal(join(snapshots, 'bbb'));
    expect(await resolveCheckpoint(join(snapshots, 'aaa'), env)).to.equal(join(snapshots, 'aaa'));
  });

  it('say how to get what is not there', async () => {
    const missing = await rejection(resolveCheckpoint('org/other', { HF_HUB_CACHE: base }));
    expect(missing.code).to.equal('BOQ_FILE_NOT_FOUND');
    expect(missing.message).to.contain('node scripts/pull.js org/other');
    expect((await rejection(resolveCheckpoint(base, {}))).message).to.contain('config.json');
    expect((await rejection(resolveCheckpoint('/no/such/folder', {}))).message).to.contain('/no/such/folder');
  });

  it('is called by its id where it lies in the Hugging Face cache, else by its folder', () => {
    const hub = '/home/u/.cache/huggingface/hub/models--Qwen--Qwen2.5-VL-3B-Instruct/snapshots/66285546d2';
    expect(checkpointName(hub)).to.equal('Qwen/Qwen2.5-VL-3B-Instruct');
    expect(checkpointName('/models/tiny')).to.equal('tiny');
    expect(checkpointName('models/tiny/')).to.equal('tiny');
  });
});
