/** Who may import whom, as a table; and that nothing outside its own file knows a benchmark or checkpoint by name. */

import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import { expect } from 'chai';
import { hostErrorCodes, nativeErrorCodes } from '../../ts/core/errors.js';

const root = resolve(import.meta.dirname, '../..');

/** Each room of ts/ and the rooms that it may import. A room that is not listed is a mistake. */
const rooms: Record<string, readonly string[]> = {
  core: [],
  native: ['core'],
  store: ['core'],
  learning: ['core', 'native', 'store'],
  agent: ['core', 'native', 'store', 'learning'],
  evaluation: ['core', 'native', 'store', 'learning', 'agent'],
  fleet: ['core', 'native', 'store', 'learning', 'agent', 'evaluation'],
  report: ['core', 'native', 'store', 'learning', 'agent', 'evaluation'],
  viewer: ['core', 'native', 'store', 'learning', 'agent', 'evaluation'],
  service: ['core', 'native', 'store', 'learning', 'agent', 'evaluation'],
  cli: ['core', 'native', 'store', 'learning', 'agent', 'evaluation', 'fleet', 'report', 'viewer', 'service'],
};

/** Rooms inside ts/agent that must not know each other; the loop joins them. */
const strangers: Record<string, readonly string[]> = {
  policy: ['browser', 'localizer', 'selectors'],
  browser: ['policy', 'localizer', 'selectors', 'vlm'],
  localizer: ['policy', 'browser', 'selectors'],
  selectors: ['policy', 'browser', 'localizer', 'actions'],
  vlm: ['policy', 'browser', 'localizer', 'selectors', 'actions'],
};

/** Folders of native/ and what each may include of the others. */
const nativeFolders: Record<string, readonly string[]> = {
  core: [],
  vlm: ['core'],
  iql: ['core'],
  bindings: ['core', 'vlm', 'iql'],
  tools: ['core', 'vlm', 'iql'],
  bench: ['core', 'vlm', 'iql'],
  test: ['core', 'vlm', 'iql'],
};

interface Import {
  from: string;
  to: string;
}

function filesBelow(folder: string, pattern: RegExp): string[] {
  if (!existsSync(join(root, folder))) return [];
  return readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
    .filter((name) => pattern.test(name))
    .map((name) => join(folder, name));
}

/** Relative imports of TypeScript or JavaScript, as paths from the root; static, dynamic and re-exports alike. */
function relativeImports(file: string): Import[] {
  const text = readFileSync(join(root, file), 'utf8');
  const found = text.matchAll(/(?:\bfrom|\bimport|\bimport\()\s*['"](\.{1,2}\/[^'"]+)['"]/g);
  return [...found].map(([, path]) => ({
    from: file,
    to: relative(root, resolve(root, dirname(file), path as string)),
  }));
}

function includes(file: string): Import[] {
  const text = readFileSync(join(root, file), 'utf8');
  return [...text.matchAll(/^\s*#\s*include\s*[<"]([^>"]+)[>"]/gm)].map(([, path]) => ({
    from: file,
    to: path as string,
  }));
}

const describeImport = ({ from, to }: Import): string => `${from} -> ${to}`;
const part = (path: string, index: number): string => path.split('/')[index] ?? '';

const typescript = filesBelow('ts', /\.tsx?$/);
const imports = typescript.flatMap(relativeImports);
const cpp = filesBelow('native', /\.(cpp|h|cu|cuh)$/);

describe('layering', () => {
  it('finds the imports it judges', () => {
    expect(imports.length).to.be.greaterThan(50);
    expect(cpp.flatMap(includes).length).to.be.greaterThan(10);
  });

  it('knows every room of ts/', () => {
    const found = new Set(
      typescript.filter((file) => file.split('/').length > 2).map((file) => part(file, 1)),
    );
    expect([...found].filter((room) => !(room in rooms))).to.deep.equal([]);
  });

  it('lets data flow in one direction through the rooms', () => {
    const wrong = imports.filter(({ from, to }) => {
      if (from === 'ts/index.ts' || from === 'ts/index.tsx') return false;
      const [own, other] = [part(from, 1), part(to, 1)];
      return own !== other && !rooms[own]?.includes(other);
    });
    expect(wrong.map(describeImport)).to.deep.equal([]);
  });

  it('keeps policy, browser, localizer, selectors and the model client apart', () => {
    const wrong = imports.filter(
      ({ from, to }) =>
        part(from, 1) === 'agent' &&
        part(to, 1) === 'agent' &&
        strangers[part(from, 2)]?.includes(part(to, 2)),
    );
    expect(wrong.map(describeImport)).to.deep.equal([]);
  });

  it('keeps set-up, its scripts and doctor on Node built-ins', () => {
    const files = [...filesBelow('scripts', /\.js$/)];
    const wrong = files.flatMap((file) => {
      const text = readFileSync(join(root, file), 'utf8');
      return [...text.matchAll(/\bfrom\s*['"]([^'"]+)['"]/g)]
        .map(([, to]) => ({ from: file, to: to as string }))
        .filter(({ to }) => !to.startsWith('node:') && !to.startsWith('./') && !to.startsWith('../'));
    });
    expect(wrong.map(describeImport)).to.deep.equal([]);
  });

  it('lets scripts import nothing but their helpers and dist/', () => {
    const wrong = filesBelow('scripts', /\.js$/)
      .flatMap(relativeImports)
      .filter(({ to }) => !/^(scripts\/(lib|setup|testing)|dist)\//.test(to));
    expect(wrong.map(describeImport)).to.deep.equal([]);
  });

  it('lets native folders include in one direction', () => {
    const wrong = cpp.flatMap(includes).filter(({ from, to }) => {
      if (!to.startsWith('native/')) return false;
      const [own, other] = [part(from, 1), part(to, 1)];
      return own !== other && !nativeFolders[own]?.includes(other);
    });
    expect(wrong.map(describeImport)).to.deep.equal([]);
  });

  it('keeps N-API inside native/bindings', () => {
    const wrong = cpp
      .flatMap(includes)
      .filter(({ from, to }) => /napi|node_api/.test(to) && part(from, 1) !== 'bindings');
    expect(wrong.filter(({ to }) => !to.startsWith('native/')).map(describeImport)).to.deep.equal([]);
  });
});

describe('no special cases', () => {
  /** A comparison with a name that only its own file may know, in either language. */
  const branch =
    /(?:[=!]==?\s*|\bcase\s+|(?:includes|startsWith|endsWith)\()['"`](?:tiny|demo|miniwob|test)(?:['"`/-])|['"`](?:tiny|demo|miniwob|test)['"`]\s*[=!]==?/;

  it('recognises a branch on a name', () => {
    expect("if (benchmark === 'miniwob') {").to.match(branch);
    expect("switch (x) { case 'tiny':").to.match(branch);
    expect("if (name.startsWith('demo-'))").to.match(branch);
    expect("const name = 'miniwob';").to.not.match(branch);
  });

  it('no code branches on tiny, demo, miniwob or test', () => {
    const own = /(^|\/)(tiny|demo|miniwob|test)[^/]*$/;
    const files = [
      ...typescript,
      ...filesBelow('scripts', /\.js$/),
      ...cpp.filter((file) => part(file, 1) !== 'test'),
    ];
    const found = files
      .filter((file) => !own.test(file))
      .flatMap((file) =>
        readFileSync(join(root, file), 'utf8')
          .split('\n')
          .map((line, index) => ({ line, place: `${file}:${index + 1}` })),
      )
      .filter(({ line }) => branch.test(line))
      .map(({ line, place }) => `${place} ${line.trim()}`);
    expect(found).to.deep.equal([]);
  });
});

describe('error codes', () => {
  const codesIn = (path: string, pattern: RegExp): string[] =>
    [
      ...new Set(
        [...readFileSync(join(root, path), 'utf8').matchAll(pattern)].map(([, code]) => code as string),
      ),
    ].sort();

  it('are the same in C++ and TypeScript', () => {
    expect(codesIn('native/core/error.cpp', /return "(BOQ_\w+)"/g)).to.deep.equal(
      [...nativeErrorCodes].sort(),
    );
  });

  it('are all documented, and nothing else is', () => {
    const all = [...nativeErrorCodes, ...hostErrorCodes].sort();
    expect(codesIn('docs/errors.md', /^\| `(BOQ_\w+)`/gm)).to.deep.equal(all);
  });
});

describe('lock file', () => {
  const lock = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8')) as {
    packages: Record<string, { optionalDependencies?: Record<string, string>; resolved?: string }>;
  };

  it('names no registry', () => {
    expect(Object.entries(lock.packages).filter(([, entry]) => entry.resolved)).to.deep.equal([]);
  });

  it('lists the optional packages of every platform, without which `npm ci` refuses it', () => {
    const wanted = Object.values(lock.packages).flatMap((entry) =>
      Object.keys(entry.optionalDependencies ?? {}),
    );
    expect(wanted.filter((name) => !(`node_modules/${name}` in lock.packages))).to.deep.equal([]);
  });
});
