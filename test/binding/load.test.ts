import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import packageJson from '../../package.json' with { type: 'json' };
import { buildInfo, loadAddon, loadAddonFrom } from '../../ts/native/load.js';
import { addonExports } from '../../ts/native/surface.js';
import { codeOf, packageRoot, runChild } from '../support/native.js';

describe('loading the addon', () => {
  it('exports exactly what the surface describes', () => {
    expect(Object.keys(loadAddon()).sort()).to.deep.equal([...addonExports].sort());
  });

  it('tells what it was built from and what it runs on', () => {
    const info = buildInfo();
    expect(info.version).to.equal(packageJson.version);
    expect(info.torch).to.match(/^\d+\.\d+\.\d+/);
    expect(info.napi).to.equal(8);
    expect(info.threads).to.be.at.least(1);
    expect(info.cpuCapability).to.be.a('string').and.not.empty;
    expect(info.bf16).to.be.a('boolean');
    expect(info.cudaProblem === '').to.equal(info.cudaAvailable);
    expect(info.cudaDevices.length > 0).to.equal(info.cudaAvailable);
  });

  it('lets OpenMP wait passively', async () => {
    const { stderr } = await runChild('openmp-policy.ts');
    expect(stderr).to.include("OMP_WAIT_POLICY = 'PASSIVE'").and.include("GOMP_SPINCOUNT = '0'");
  });

  describe('from another folder', () => {
    let folder: string;
    beforeEach(async () => {
      folder = await mkdtemp(join(tmpdir(), 'boq-load-'));
    });
    afterEach(() => rm(folder, { recursive: true }));

    it('says that it is not built, and how to build it', () => {
      expect(() => loadAddonFrom(folder))
        .to.throw(/node scripts\/setup\.js/)
        .with.property('code', 'BOQ_NATIVE_NOT_FOUND');
    });

    it('says why a damaged binary cannot be loaded', async () => {
      await mkdir(join(folder, 'build', 'Release'), { recursive: true });
      await writeFile(join(folder, 'build', 'Release', 'boq_native.node'), 'not a library');
      expect(await codeOf(() => loadAddonFrom(folder))).to.equal('BOQ_NATIVE_NOT_FOUND');
    });

    it('refuses a binary of another version', async () => {
      await writeFile(join(folder, 'package.json'), JSON.stringify({ version: '99.0.0' }));
      await mkdir(join(folder, 'build'));
      await symlink(join(packageRoot, 'build', 'Release'), join(folder, 'build', 'Release'));
      expect(() => loadAddonFrom(folder))
        .to.throw(/99\.0\.0.*node scripts\/setup\.js/)
        .with.property('code', 'BOQ_NATIVE_MISMATCH');
    });
  });
});
