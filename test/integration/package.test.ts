/** The package as a user imports it: the built files, by name, in both module systems. */
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { expect } from 'chai';
import * as source from '../../ts/index.js';
import { packageRoot } from '../support/native.js';

const run = promisify(execFile);

/** What a child that imports the package says about it. */
async function imported(type: 'module' | 'commonjs', load: string): Promise<Record<string, unknown>> {
  const code = `${load}
    const { sharedObjects } = process.report.getReport();
    console.log(JSON.stringify({
      names: Object.keys(boq).sort(),
      code: new boq.BoqError('BOQ_USAGE', 'x').code,
      torch: sharedObjects.filter((path) => /boq_native|libtorch|libc10/.test(path)),
    }));`;
  const { stdout } = await run(process.execPath, [`--input-type=${type}`, '-e', code], { cwd: packageRoot });
  return JSON.parse(stdout) as Record<string, unknown>;
}

describe('the package', () => {
  const expected = { names: Object.keys(source).sort(), code: 'BOQ_USAGE', torch: [] };

  it('is imported by ES modules, without loading libtorch', async () => {
    expect(await imported('module', `import * as boq from '@boq/native';`)).to.deep.equal(expected);
  });

  it('is required by CommonJS modules, with the same exports', async () => {
    expect(await imported('commonjs', `const boq = require('@boq/native');`)).to.deep.equal(expected);
  });

  it('gives both the same classes', async () => {
    const code = `
      const required = require('@boq/native');
      import('@boq/native').then((boq) => console.log(boq.BoqError === required.BoqError));`;
    const { stdout } = await run(process.execPath, ['-e', code], { cwd: packageRoot });
    expect(stdout.trim()).to.equal('true');
  });

  it('loads libtorch with the first call that needs it', async () => {
    const load = `const boq = require('@boq/native'); boq.buildInfo();`;
    expect((await imported('commonjs', load)).torch).to.not.be.empty;
  });

  it('keeps its inner files to itself', async () => {
    const failure = await run(process.execPath, ['-e', `require('@boq/native/dist/core/errors.js')`], {
      cwd: packageRoot,
    }).catch((error: { stderr: string }) => error.stderr);
    expect(failure).to.include('ERR_PACKAGE_PATH_NOT_EXPORTED');
  });
});
