import { mkdtemp, readdir, readFile, readlink, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { resolveCheckpoint } from '../../../ts/learning/checkpoints.js';
import { type PullOptions, type PullPlan, pullCheckpoint } from '../../../ts/learning/hub.js';
import { commit, HubServer } from '../../support/hub-server.js';
import { rejection } from '../../support/rejection.js';

const weights = Buffer.alloc(300_000, 'weights');
const checkpoint = () => ({
  'config.json': '{"model_type": "qwen2_5_vl"}',
  'tokenizer.json': '{"added_tokens": []}',
  'tokenizer_config.json': '{}',
  'preprocessor_config.json': '{}',
  'model-00001-of-00002.safetensors': weights,
  'model-00002-of-00002.safetensors': Buffer.alloc(1000, 'x'),
  'model.safetensors.index.json': '{"weight_map": {}}',
  'pytorch_model.bin': 'never fetched',
  'README.md': '# A model',
});

describe('pulling a checkpoint', () => {
  let hub: HubServer;
  let cache: string;
  let endpoint: string;
  beforeEach(async () => {
    hub = new HubServer(checkpoint());
    endpoint = await hub.start();
    cache = await mkdtemp(join(tmpdir(), 'boq-pull-'));
  });
  afterEach(async () => {
    await hub.stop();
    await rm(cache, { recursive: true });
  });

  const env = () => ({ HF_HUB_CACHE: cache, HF_ENDPOINT: endpoint, HF_HOME: cache });
  const pull = (options: PullOptions = {}) =>
    pullCheckpoint(hub.id, { env: env(), settings: { retryMs: 1, attempts: 4 }, ...options });
  const fetched = (name: string) =>
    hub.requests.filter(({ url }) => url.startsWith('/cdn/') && url.includes(name));

  /** Bytes of the unfinished file in the cache. */
  const kept = async () => {
    const blobs = join(cache, 'models--org--model', 'blobs');
    const name = (await readdir(blobs)).find((each) => each.endsWith('.incomplete'));
    return name === undefined ? 0 : (await stat(join(blobs, name))).size;
  };

  it('makes the cache that Python reads: blobs by hash, a snapshot of links, a ref', async () => {
    let plan: PullPlan | undefined;
    const seen: number[] = [];
    const result = await pull({
      onPlan: (each) => {
        plan = each;
      },
      onProgress: ({ bytes, totalBytes }) => seen.push(bytes / totalBytes),
    });
    expect(plan).to.include({ license: 'apache-2.0', commit, files: 8 });
    expect(seen.at(-1)).to.equal(1);
    expect(
      [...seen].sort((a, b) => a - b),
      'never backwards',
    ).to.deep.equal(seen);
    const repository = join(cache, 'models--org--model');
    expect(result.folder).to.equal(join(repository, 'snapshots', commit));
    expect(await readFile(join(repository, 'refs', 'main'), 'utf8')).to.equal(commit);
    const link = await readlink(join(result.folder, 'config.json'));
    expect(link).to.equal(`../../blobs/${hub.etag('config.json')}`);
    expect(await readFile(join(result.folder, 'model-00001-of-00002.safetensors'))).to.deep.equal(weights);
    expect(await readdir(result.folder)).not.to.include('pytorch_model.bin');
    expect((await readdir(join(repository, 'blobs'))).filter((name) => name.includes('.'))).to.deep.equal([]);
    expect(await resolveCheckpoint(hub.id, env())).to.equal(result.folder);
  });

  it('fetches nothing twice', async () => {
    await pull();
    hub.requests.length = 0;
    await pull();
    expect(hub.requests.filter(({ url }) => !url.startsWith('/api/'))).to.deep.equal([]);
  });

  it('goes on where a broken connection left it, within a call and across calls', async () => {
    hub.faults = [{ match: '/cdn/model-00001', times: 1, breakAfter: 100_000, kept }];
    await pull();
    const ranges = fetched('model-00001').map(({ range }) => Number(/\d+/.exec(range ?? '')?.[0] ?? 0));
    expect(ranges).to.have.length(2);
    expect(ranges[1]).to.equal(100_000);

    await rm(join(cache, 'models--org--model'), { recursive: true });
    hub.requests.length = 0;
    hub.faults = [{ match: '/cdn/model-00001', times: 4, breakAfter: 10_000, kept }];
    const failed = await rejection(pull());
    expect(failed.code).to.equal('BOQ_HUB');
    expect(failed.message).to.match(/model-00001.*4 times/);
    hub.requests.length = 0;
    const { folder } = await pull();
    expect(fetched('model-00001')[0]?.range).to.equal('bytes=40000-');
    expect(await readFile(join(folder, 'model-00001-of-00002.safetensors'))).to.deep.equal(weights);
  });

  it('starts a file again where the server does not know ranges', async () => {
    hub.faults = [
      { match: '/cdn/model-00001', times: 1, breakAfter: 50_000, kept },
      { match: '/cdn/model-00001', times: 1, ignoreRange: true },
    ];
    const { folder } = await pull();
    expect(await readFile(join(folder, 'model-00001-of-00002.safetensors'))).to.deep.equal(weights);
  });

  it('waits for an overloaded hub, as long as it says', async () => {
    hub.faults = [
      { match: '/api/', times: 1, status: 429, headers: { 'retry-after': '0' } },
      { match: '/cdn/model-00002', times: 2, status: 503 },
    ];
    await pull();
    expect(fetched('model-00002')).to.have.length(3);
  });

  it('deletes what has another hash, and says so', async () => {
    const wrong = Buffer.alloc(weights.length, 'evil');
    hub.faults = [{ match: '/cdn/model-00001', times: 1, instead: wrong }];
    const error = await rejection(pull());
    expect(error.code).to.equal('BOQ_FILE_CORRUPT');
    expect(error.message)
      .to.contain('model-00001')
      .and.to.contain(hub.etag('model-00001-of-00002.safetensors'));
    const blobs = await readdir(join(cache, 'models--org--model', 'blobs'));
    expect(blobs).not.to.include(hub.etag('model-00001-of-00002.safetensors'));
    expect(blobs.filter((name) => name.endsWith('.incomplete'))).to.deep.equal([]);
    const { folder } = await pull();
    expect(await readFile(join(folder, 'model-00001-of-00002.safetensors'))).to.deep.equal(weights);
    hub.files.set('README.md', Buffer.from('# Another'));
    hub.faults = [{ match: '/resolve/', times: 1, instead: Buffer.from('# Forged!') }];
    expect((await rejection(pull())).code, 'small files are checked as well').to.equal('BOQ_FILE_CORRUPT');
  });

  it('refuses another architecture before anything large', async () => {
    hub.files.set('config.json', Buffer.from('{"model_type": "llama"}'));
    const error = await rejection(pull());
    expect(error.code).to.equal('BOQ_CONFIG_INVALID');
    expect(error.message).to.contain('"llama"');
    expect(fetched('model-')).to.deep.equal([]);
  });

  it('says what to do about gated, unknown and incomplete repositories', async () => {
    hub.token = 'secret';
    const gated = await rejection(pull());
    expect(gated.code).to.equal('BOQ_HUB');
    expect(gated.message).to.contain('HF_TOKEN').and.not.to.contain('secret');
    await pull({ env: { ...env(), HF_TOKEN: 'secret' } });
    await writeFile(join(cache, 'token'), 'secret\n');
    await pull();
    const unknown = await rejection(pullCheckpoint('org/other', { env: env(), settings: { retryMs: 1 } }));
    expect(unknown.message).to.match(/org\/other.*spelling/);
    hub.files.delete('tokenizer.json');
    expect((await rejection(pull())).message).to.contain('needs tokenizer.json');
    expect((await rejection(pullCheckpoint('no-slash', { env: env() }))).code).to.equal('BOQ_USAGE');
  });

  it('works from the cache alone when told to be offline', async () => {
    const { folder } = await pull();
    hub.requests.length = 0;
    const offline = { ...env(), HF_HUB_OFFLINE: '1' };
    expect((await pull({ env: offline })).folder).to.equal(folder);
    expect(hub.requests).to.deep.equal([]);
    const missing = await rejection(pullCheckpoint('org/other', { env: offline }));
    expect(missing.code).to.equal('BOQ_FILE_NOT_FOUND');
  });

  it('names a hub that cannot be reached', async () => {
    await hub.stop();
    const error = await rejection(pull());
    expect(error.code).to.equal('BOQ_HUB');
    expect(error.message).to.match(/4 times|could not be reached/);
    hub = new HubServer(checkpoint());
    endpoint = await hub.start();
  });

  it('stops at once when asked, and keeps what it has', async () => {
    const stop = new AbortController();
    const stopped = await rejection(
      pull({
        signal: stop.signal,
        onProgress: ({ bytes }) => {
          if (bytes > 1000) stop.abort();
        },
      }),
    );
    expect(stopped.code).to.equal('BOQ_ABORTED');
    expect((await pull()).folder).to.contain(commit);
  });
});
