/** The addon called directly: whatever arrives, it answers with a code and stays usable. */
import { expect } from 'chai';
import { loadAddon } from '../../ts/native/load.js';
import type { AddonEmbedder } from '../../ts/native/surface.js';
import { codeOf, textItems, tinyOptions } from '../support/native.js';

const addon = loadAddon();

function detached(): Int32Array {
  const ids = new Int32Array(4);
  structuredClone(ids.buffer, { transfer: [ids.buffer] });
  return ids;
}

function resizable(): Int32Array {
  // The types of es2022 do not know resizable buffers.
  const make = ArrayBuffer as unknown as new (length: number, options: object) => ArrayBuffer;
  return new Int32Array(new make(16, { maxByteLength: 64 }));
}

const image = (data: unknown, width: unknown, height: unknown): unknown => [
  { ids: Int32Array.of(1), images: [{ data, width, height }] },
];

describe('arguments of the addon', () => {
  let embedder: AddonEmbedder;
  before(async () => {
    embedder = await addon.loadEmbedder(JSON.stringify(await tinyOptions()));
  });
  after(() => embedder.dispose());

  const wrongItems: [string, unknown, string][] = [
    ['nothing', undefined, 'BOQ_INVALID_ARGUMENT'],
    ['no array', { length: 1 }, 'BOQ_INVALID_ARGUMENT'],
    ['null as an item', [null], 'BOQ_INVALID_ARGUMENT'],
    ['a hole', new Array(1), 'BOQ_INVALID_ARGUMENT'],
    ['no ids', [{ images: [] }], 'BOQ_INVALID_ARGUMENT'],
    ['plain numbers as ids', [{ ids: [1, 2], images: [] }], 'BOQ_INVALID_ARGUMENT'],
    ['floats as ids', [{ ids: Float32Array.of(1), images: [] }], 'BOQ_INVALID_ARGUMENT'],
    ['empty ids', [{ ids: new Int32Array(0), images: [] }], 'BOQ_INVALID_ARGUMENT'],
    ['detached ids', [{ ids: detached(), images: [] }], 'BOQ_INVALID_ARGUMENT'],
    ['resizable ids', [{ ids: resizable(), images: [] }], 'BOQ_INVALID_ARGUMENT'],
    ['shared ids', [{ ids: new Int32Array(new SharedArrayBuffer(8)), images: [] }], 'BOQ_INVALID_ARGUMENT'],
    ['a DataView as ids', [{ ids: new DataView(new ArrayBuffer(8)), images: [] }], 'BOQ_INVALID_ARGUMENT'],
    ['no images', [{ ids: Int32Array.of(1) }], 'BOQ_INVALID_ARGUMENT'],
    ['too few bytes', image(new Uint8Array(11), 2, 2), 'BOQ_SHAPE_MISMATCH'],
    ['too many bytes', image(new Uint8Array(13), 2, 2), 'BOQ_SHAPE_MISMATCH'],
    ['width 0', image(new Uint8Array(0), 0, 2), 'BOQ_INVALID_ARGUMENT'],
    ['width -1', image(new Uint8Array(0), -1, 2), 'BOQ_INVALID_ARGUMENT'],
    ['width 1.5', image(new Uint8Array(9), 1.5, 2), 'BOQ_INVALID_ARGUMENT'],
    ['width NaN', image(new Uint8Array(12), Number.NaN, 2), 'BOQ_INVALID_ARGUMENT'],
    ['width 2 ** 40', image(new Uint8Array(12), 2 ** 40, 2), 'BOQ_INVALID_ARGUMENT'],
    ['a width in words', image(new Uint8Array(12), '2', 2), 'BOQ_INVALID_ARGUMENT'],
    ['a signed array as pixels', image(new Int8Array(12), 2, 2), 'BOQ_INVALID_ARGUMENT'],
    ['an id below 0', [{ ids: Int32Array.of(-1), images: [] }], 'BOQ_INVALID_ARGUMENT'],
    ['an id above the vocabulary', [{ ids: Int32Array.of(2 ** 31 - 1), images: [] }], 'BOQ_INVALID_ARGUMENT'],
  ];
  for (const [name, items, code] of wrongItems) {
    it(`embed refuses ${name}`, async () => {
      expect(await codeOf(() => embedder.embed(items as never))).to.equal(code);
    });
  }

  it('what a getter throws passes through', async () => {
    const thrown = new Error('from the getter');
    const items = [
      {
        images: [],
        get ids(): Int32Array {
          throw thrown;
        },
      },
    ];
    expect(() => embedder.embed(items)).to.throw(thrown);
  });

  it('a getter that disposes the model meets BOQ_DISPOSED', async () => {
    const other = await addon.loadEmbedder(JSON.stringify(await tinyOptions()));
    const items = [
      {
        images: [],
        get ids(): Int32Array {
          void other.dispose();
          return Int32Array.of(1);
        },
      },
    ];
    expect(await codeOf(() => other.embed(items))).to.equal('BOQ_DISPOSED');
  });

  for (const token of [null, {}, 1, () => undefined]) {
    it(`a token must be a cancel token, not ${token === null ? 'null' : typeof token}`, async () => {
      expect(await codeOf(() => embedder.embed(textItems(1), token as never))).to.equal(
        'BOQ_INVALID_ARGUMENT',
      );
    });
  }

  it('another wrapped object is no cancel token', async () => {
    expect(await codeOf(() => embedder.embed(textItems(1), embedder as never))).to.equal(
      'BOQ_INVALID_ARGUMENT',
    );
  });

  it('methods refuse a receiver of another class', () => {
    const token = addon.createCancelToken();
    expect(() => embedder.embed.call(token as never, [])).to.throw(TypeError);
    expect(() => token.cancel.call(embedder as never)).to.throw(TypeError);
  });

  it('the constructor behind a handle makes nothing usable', async () => {
    const Constructor = embedder.constructor as new () => AddonEmbedder;
    for (const use of ['info', 'embed', 'dispose'] as const) {
      expect(await codeOf(() => new Constructor()[use]([]))).to.equal('BOQ_DISPOSED');
    }
  });

  const wrongOptions: [string, (options: Record<string, unknown>) => unknown, string][] = [
    ['no string', (options) => options, 'BOQ_INVALID_ARGUMENT'],
    ['no JSON', () => '{', 'BOQ_INVALID_ARGUMENT'],
    ['deep JSON', () => '['.repeat(100_000), 'BOQ_INVALID_ARGUMENT'],
    ['no path', ({ path: _, ...rest }) => JSON.stringify(rest), 'BOQ_INVALID_ARGUMENT'],
    ['a number as path', (options) => JSON.stringify({ ...options, path: 1 }), 'BOQ_INVALID_ARGUMENT'],
    ['an unknown device', (options) => JSON.stringify({ ...options, device: 'tpu' }), 'BOQ_INVALID_ARGUMENT'],
    ['an unknown dtype', (options) => JSON.stringify({ ...options, dtype: 'int8' }), 'BOQ_INVALID_ARGUMENT'],
    [
      'an unknown pooling',
      (options) => JSON.stringify({ ...options, pooling: 'max' }),
      'BOQ_INVALID_ARGUMENT',
    ],
    ['pixels the wrong way', (o) => JSON.stringify({ ...o, maxPixels: 1 }), 'BOQ_INVALID_ARGUMENT'],
    ['a missing folder', (o) => JSON.stringify({ ...o, path: '/nowhere' }), 'BOQ_FILE_NOT_FOUND'],
  ];
  for (const [name, change, code] of wrongOptions) {
    it(`loadEmbedder refuses ${name}`, async () => {
      const options = { ...(await tinyOptions()) };
      expect(await codeOf(() => addon.loadEmbedder(change(options) as never))).to.equal(code);
    });
  }

  it('train refuses a callback that is none, a bad request and a missing folder', async () => {
    const request = { data: ['/nowhere'], out: '/nowhere/out', device: 'cpu', config: {}, resume: false };
    const text = JSON.stringify(request);
    expect(await codeOf(() => addon.train(text, 1 as never))).to.equal('BOQ_INVALID_ARGUMENT');
    expect(await codeOf(() => addon.train('[]'))).to.equal('BOQ_INVALID_ARGUMENT');
    expect(await codeOf(() => addon.train(text))).to.equal('BOQ_FILE_NOT_FOUND');
  });

  it('loadScorer refuses bad options and a missing folder', async () => {
    expect(await codeOf(() => addon.loadScorer('{}'))).to.equal('BOQ_INVALID_ARGUMENT');
    const options = JSON.stringify({ path: '/nowhere', device: 'cpu' });
    expect(await codeOf(() => addon.loadScorer(options))).to.equal('BOQ_FILE_NOT_FOUND');
  });

  it('after all that the embedder works', async () => {
    const { vectors, tokens } = await embedder.embed(textItems(2));
    expect(vectors.length).to.equal(2 * embedder.info().width);
    expect([...tokens]).to.deep.equal([512, 512]);
  });
});
