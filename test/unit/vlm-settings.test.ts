/** Which endpoint is asked, from flags, environment and file. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { retryAfterMs } from '../../ts/agent/vlm/faults.js';
import { readVlmFile, resolveEndpoint, type SettingsSources } from '../../ts/agent/vlm/index.js';
import { strictSchema } from '../../ts/agent/vlm/strict-schema.js';
import type { BoqError } from '../../ts/core/errors.js';

function fault(run: () => unknown): BoqError {
  try {
    run();
  } catch (error) {
    return error as BoqError;
  }
  throw new Error('no error');
}

const resolve = (sources: SettingsSources) => resolveEndpoint('policy', { environment: {}, ...sources });

describe('VLM settings', () => {
  it('take flags before environment before file', () => {
    const file = { endpoint: 'ollama', model: 'file', maxPixels: 1000, attempts: 2 };
    const environment = { BOQ_VLM_MODEL: 'environment', BOQ_VLM_API_KEY: 'k' };
    const settings = resolve({ options: { endpoint: 'vllm' }, environment, file });
    expect(settings).to.include({
      label: 'vllm',
      baseUrl: 'http://localhost:8000/v1',
      model: 'environment',
      apiKey: 'k',
      maxPixels: 1000,
      attempts: 2,
      format: 'json_schema',
      maxOutputTokens: 2048,
    });
  });

  it('know the services, their keys and their words', () => {
    const environment = { OPENAI_API_KEY: 'one', OPENROUTER_API_KEY: 'two' };
    const openai = resolve({ options: { endpoint: 'openai', model: 'm' }, environment });
    expect(openai).to.include({ apiKey: 'one', lengthField: 'max_completion_tokens' });
    const router = resolve({ options: { endpoint: 'openrouter', model: 'm' }, environment });
    expect(router).to.include({ apiKey: 'two', lengthField: 'max_tokens' });
    expect(resolve({ options: { endpoint: 'sglang', model: 'm' }, environment }).apiKey).to.equal(null);
    expect(fault(() => resolve({ options: { endpoint: 'openai', model: 'm' } }))).to.include({
      code: 'BOQ_VLM_KEY',
      message: 'Expected a key for openai: set OPENAI_API_KEY or BOQ_VLM_API_KEY.',
    });
  });

  it('give a role the general endpoint, or its own with nothing of the other', () => {
    const file = {
      endpoint: 'http://a/v1/',
      model: 'big',
      apiKey: 'secret-of-a',
      localizer: { endpoint: 'http://b/v1/chat/completions', model: 'holo' },
      picker: { model: 'small' },
    };
    const sources = { environment: {}, file };
    expect(resolveEndpoint('policy', sources)).to.include({ baseUrl: 'http://a/v1', model: 'big' });
    const localizer = resolveEndpoint('localizer', sources);
    expect(localizer).to.include({ baseUrl: 'http://b/v1', model: 'holo', apiKey: null });
    const picker = resolveEndpoint('picker', sources);
    expect(picker).to.include({ baseUrl: 'http://a/v1', model: 'small', apiKey: 'secret-of-a' });
    const environment = { BOQ_LOCALIZER_MODEL: 'holo2' };
    expect(resolveEndpoint('localizer', { environment, file }).model).to.equal('holo2');
  });

  it('say what is missing', () => {
    expect(fault(() => resolve({}))).to.include({ code: 'BOQ_VLM_ENDPOINT' });
    expect(fault(() => resolve({})).message).to.include('--endpoint');
    expect(fault(() => resolve({ options: { endpoint: 'vllm' } })).message).to.include('a model');
    const near = fault(() => resolve({ options: { endpoint: 'olama', model: 'm' } }));
    expect(near.message).to.include('did you mean ollama');
  });

  it('keep user names, passwords and queries out of the label', () => {
    const options = { endpoint: 'https://me:pass@host/v1?key=abc', model: 'm' };
    expect(resolve({ options }).label).to.equal('https://host/v1');
  });

  describe('file', () => {
    let folder: string;
    const write = async (content: string): Promise<string> => {
      const path = join(folder, 'vlm.json');
      await writeFile(path, content);
      return path;
    };
    const told = (path: string): BoqError => fault(() => readVlmFile(path));
    before(async () => {
      folder = await mkdtemp(join(tmpdir(), 'boq-vlm-'));
    });
    after(() => rm(folder, { recursive: true }));

    it('is read', async () => {
      const file = { endpoint: 'vllm', model: 'm', price: { input: 1, output: 2 }, picker: { model: 'n' } };
      expect(readVlmFile(await write(JSON.stringify(file)))).to.deep.equal(file);
    });

    it('is named by a flag or by the environment', async () => {
      const path = await write('{"endpoint": "ollama", "model": "m"}');
      const settings = resolveEndpoint('policy', { environment: { BOQ_VLM_CONFIG: path } });
      expect(settings.label).to.equal('ollama');
    });

    it('is refused with every fault, the nearest key, and no value', async () => {
      const path = await write('{"modle": "m", "apiKey": 1234567, "localizer": {"attempts": 0}}');
      const { code, message } = told(path);
      expect(code).to.equal('BOQ_CONFIG_INVALID');
      expect(message).to.include('"modle" (did you mean model?)').and.include('apiKey must be string');
      expect(message).to.include('localizer.attempts').and.not.include('1234567');
      expect(told(await write('{"apiKey": "k')).code).to.equal('BOQ_CONFIG_INVALID');
      expect(told(join(folder, 'none.json')).code).to.equal('BOQ_FILE_NOT_FOUND');
    });
  });
});

describe('Retry-After', () => {
  const wait = (value: string) => retryAfterMs(new Headers({ 'retry-after': value }), Date.UTC(2026, 0, 1));
  it('is read as seconds or as a date', () => {
    expect(wait('3')).to.equal(3000);
    expect(wait('0.5')).to.equal(500);
    expect(wait('Thu, 01 Jan 2026 00:00:20 GMT')).to.equal(20_000);
    expect(wait('Wed, 31 Dec 2025 00:00:00 GMT')).to.equal(0);
    expect(wait('soon')).to.equal(undefined);
    expect(retryAfterMs(undefined)).to.equal(undefined);
  });
});

describe('strict schemas', () => {
  it('keep what endpoints know and are strict where every property is required', () => {
    const inner = {
      type: 'object',
      properties: { type: { const: 'click' }, element: { type: 'string', minLength: 1 } },
      required: ['type', 'element'],
      additionalProperties: false,
    };
    expect(strictSchema({ anyOf: [inner] })).to.deep.equal({
      strict: true,
      schema: {
        anyOf: [
          {
            ...inner,
            properties: { type: { enum: ['click'], type: 'string' }, element: { type: 'string' } },
          },
        ],
      },
    });
    expect(strictSchema({ type: 'array', items: { ...inner, required: ['type'] } }).strict).to.equal(false);
  });
});
