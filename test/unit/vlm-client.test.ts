/** Calls to a model, against a real server that misbehaves in every way that its fixtures know. */
import { readFileSync } from 'node:fs';
import { inspect } from 'node:util';
import { expect } from 'chai';
import sharp from 'sharp';
import type { Screenshot } from '../../ts/agent/types.js';
import {
  ChatClient,
  type ChatEvent,
  type ChatMessage,
  type ChatRequest,
  type EndpointOptions,
  resolveEndpoint,
  say,
} from '../../ts/agent/vlm/index.js';
import { type BoqError, isBoqError } from '../../ts/core/errors.js';
import type { Usage } from '../../ts/store/types.js';
import { endpointFaults } from '../support/endpoint-faults.js';
import { EndpointServer, endpointForEachTest, imagesOf } from '../support/endpoint-server.js';

const apiKey = 'key-0123456789abcdef';

async function picture(width = 56, height = 56): Promise<Screenshot> {
  const image = sharp({ create: { width, height, channels: 3, background: '#88aaff' } });
  return { bytes: await image.webp().toBuffer(), format: 'webp', width, height };
}

interface Told {
  text: string;
  end: ChatEvent & { type: 'end' };
  usage: Usage[];
  waits: number[];
  notices: string[];
}

/** Calls the model once; three attempts, pauses noted instead of waited for. */
class Caller {
  readonly waits: number[] = [];
  readonly notices: string[] = [];
  readonly usage: Usage[] = [];
  readonly client: ChatClient;

  constructor(endpoint: string, options: EndpointOptions = {}) {
    const settings = resolveEndpoint('policy', {
      options: { endpoint, model: 'm', apiKey, attempts: 3, ...options },
      environment: {},
    });
    this.client = new ChatClient(settings, {
      onNotice: (notice) => this.notices.push(notice),
      pause: async (ms) => void this.waits.push(ms),
    });
  }

  async ask(changes: Partial<ChatRequest> = {}): Promise<Told> {
    let text = '';
    let end: Told['end'] | undefined;
    for await (const event of this.client.chat({ ...(await request()), ...changes })) {
      if (event.type === 'text') text += event.text;
      else if (event.type === 'usage') this.usage.push(event.usage);
      else end = event;
    }
    return { text, end: end!, usage: this.usage, waits: this.waits, notices: this.notices };
  }
}

/** A request with a picture and a schema that can be made shorter once. */
async function request(): Promise<ChatRequest> {
  const screenshot = await picture();
  const messages = (level: number): ChatMessage[] | null => {
    if (level > 1) return null;
    const parts = [{ type: 'image', screenshot } as const, { type: 'text', text: `level ${level}` } as const];
    return [say('system', 'You answer.'), { role: 'user', content: parts }];
  };
  const schema = {
    type: 'object',
    properties: { fine: { const: true } },
    required: ['fine'],
    additionalProperties: false,
  };
  return { purpose: 'policy', messages, schema: { name: 'answer', schema }, temperature: 0.7 };
}

describe('VLM client', () => {
  const server = endpointForEachTest();

  describe('faults of the endpoint', () => {
    for (const [name, { sent, isForever, isQuiet, ends, says, waits, asked }] of Object.entries(
      endpointFaults,
    )) {
      it(`${name}: ${ends}`, async () => {
        server.script = [...sent];
        server.otherwise = isForever ? sent[0]! : { pieces: ['fine'] };
        const patience = { beginMs: 1500, silenceMs: 1500 };
        const caller = new Caller(server.url, isQuiet ? patience : {});
        const told = await caller.ask().catch((error: unknown) => error as BoqError);
        // Every call is counted, and the key is nowhere.
        expect(caller.usage).to.have.length(server.requests.length);
        expect(inspect([told, caller], { depth: 9 })).to.not.include(apiKey);
        if (isBoqError(told)) {
          expect(told.code, told.message).to.equal(ends);
          expect(told.message).to.match(/^http:\/\/127\.0\.0\.1:\d+\/v1: .*\.$/);
          expect(told.message).to.include(says ?? '');
        } else {
          if (told instanceof Error) throw told;
          expect(told.end.reason === 'stop' ? 'answered' : told.end.reason).to.equal(ends);
          expect(told.end.message).to.include(says ?? '');
          if (ends === 'answered') expect(told.text).to.equal('fine');
        }
        if (waits) expect(caller.waits).to.deep.equal(waits);
        if (asked) expect(server.requests.at(-1)!.body).to.satisfy(asked);
      });
    }
  });

  it('sends model, messages, picture, schema, limits and key', async () => {
    server.script = [{ pieces: ['fi', 'ne'] }];
    const { text, usage } = await new Caller(server.url).ask();
    expect(text).to.equal('fine');
    expect(usage).to.deep.equal([{ purpose: 'policy', model: 'm', inputTokens: 100, outputTokens: 10 }]);
    const [{ body, authorization, url: path }] = server.requests as [(typeof server.requests)[0]];
    expect(path).to.equal('/v1/chat/completions');
    expect(authorization).to.equal(`Bearer ${apiKey}`);
    expect(body).to.include({ model: 'm', stream: true, temperature: 0.7, max_tokens: 2048 });
    expect(body.stream_options).to.deep.equal({ include_usage: true });
    expect(body.messages[0]).to.deep.equal({ role: 'system', content: 'You answer.' });
    const [image] = imagesOf(body);
    const sent = await sharp(Buffer.from(image!.split(',')[1]!, 'base64')).metadata();
    expect(sent).to.include({ format: 'png', width: 56, height: 56 });
    expect(body.response_format!.json_schema).to.deep.equal({
      name: 'answer',
      strict: true,
      schema: {
        type: 'object',
        properties: { fine: { enum: [true] } },
        required: ['fine'],
        additionalProperties: false,
      },
    });
  });

  it('sends no key where there is none, and no key of another service', async () => {
    const before = process.env['OPENAI_API_KEY'];
    process.env['OPENAI_API_KEY'] = 'not-for-you-0123456789';
    try {
      const settings = resolveEndpoint('policy', { options: { endpoint: server.url, model: 'm' } });
      for await (const _ of new ChatClient(settings).chat(await request()));
    } finally {
      if (before === undefined) delete process.env['OPENAI_API_KEY'];
      else process.env['OPENAI_API_KEY'] = before;
    }
    expect(server.requests[0]!.authorization).to.equal(undefined);
  });

  it('remembers what an endpoint refuses', async () => {
    server.otherwise = ({ response_format }) =>
      response_format?.type === 'json_schema' ? { status: 400, body: '' } : { pieces: ['fine'] };
    const caller = new Caller(server.url);
    await caller.ask();
    expect(server.requests).to.have.length(2);
    await caller.ask();
    expect(server.requests).to.have.length(3);
    expect(caller.notices).to.deep.equal([`${server.url}: json_schema is refused, json_object from now on.`]);
  });

  it('steps down once when several calls are refused at the same time', async () => {
    server.otherwise = ({ response_format }) =>
      response_format?.type === 'json_schema' ? { status: 400, body: '' } : { pieces: ['fine'] };
    const caller = new Caller(server.url);
    await Promise.all([caller.ask(), caller.ask(), caller.ask()]);
    expect(server.requests.at(-1)!.body.response_format).to.deep.equal({ type: 'json_object' });
  });

  it('shortens in advance where the context is known', async () => {
    server.otherwise = { pieces: ['fine'] };
    const messages = (level: number) => [say('user', 'word '.repeat(level === 0 ? 4000 : 10))];
    await new Caller(server.url, { contextTokens: 4096 }).ask({ messages });
    expect(JSON.stringify(server.requests[0]!.body.messages)).to.have.length.below(200);
  });

  it('estimates tokens where the endpoint does not count, thoughts included', async () => {
    server.script = [{ pieces: ['word '.repeat(8)], reasoning: 'hm. '.repeat(100), usage: null }];
    const { usage } = await new Caller(server.url).ask();
    expect(usage[0]!.outputTokens).to.equal(110);
    expect(usage[0]!.inputTokens).to.be.within(10, 30);
  });

  it('makes a large picture smaller and keeps its shape', async () => {
    server.otherwise = { pieces: ['fine'] };
    const screenshot = await picture(400, 200);
    const messages = () => [{ role: 'user', content: [{ type: 'image', screenshot }] } as ChatMessage];
    await new Caller(server.url, { maxPixels: 20_000, imageFormat: 'jpeg' }).ask({ messages });
    const [image] = imagesOf(server.requests[0]!.body);
    const sent = await sharp(Buffer.from(image!.split(',')[1]!, 'base64')).metadata();
    expect(sent).to.include({ format: 'jpeg', width: 200, height: 100 });
  });

  it('stops when its caller does, and still counts', async () => {
    server.script = [{ pieces: ['one', 'two'], hangAfter: 1 }];
    const caller = new Caller(server.url, { silenceMs: 60_000 });
    const stop = new AbortController();
    const usage: Usage[] = [];
    const error = await (async () => {
      for await (const event of caller.client.chat({ ...(await request()), signal: stop.signal })) {
        if (event.type === 'text') stop.abort();
        if (event.type === 'usage') usage.push(event.usage);
      }
    })().catch((reason: unknown) => reason);
    expect(error).to.satisfy((reason: unknown) => isBoqError(reason, 'BOQ_ABORTED'));
    expect(usage).to.have.length(1);
    expect(usage[0]!.inputTokens).to.be.greaterThan(0);
  });

  it('says when nothing listens, at once on the first call', async () => {
    await server.stop();
    const caller = new Caller(server.url);
    const error = (await caller.ask().catch((reason: unknown) => reason)) as BoqError;
    expect(error.code).to.equal('BOQ_VLM_UNREACHABLE');
    expect(error.message).to.include('start the server');
    expect(caller.waits).to.deep.equal([]);
    await server.start();
  });

  it('says at once when the port is one that nobody may use', async () => {
    const caller = new Caller('http://127.0.0.1:1/v1');
    const error = (await caller.ask().catch((reason: unknown) => reason)) as BoqError;
    expect(error.code).to.equal('BOQ_VLM_UNREACHABLE');
    expect(caller.waits).to.deep.equal([]);
  });

  it('says when there is no such host', async () => {
    const caller = new Caller('http://no-such-host.invalid/v1');
    const error = (await caller.ask().catch((reason: unknown) => reason)) as BoqError;
    expect(error.code).to.equal('BOQ_VLM_UNREACHABLE');
  });

  it('says when the other side speaks no TLS', async () => {
    const error = (await new Caller(server.url.replace('http:', 'https:'))
      .ask()
      .catch((reason: unknown) => reason)) as BoqError;
    expect(error.code, error.message).to.equal('BOQ_VLM_TLS');
    expect(error.message).to.include('http://');
  });

  it('says when a certificate is not trusted', async () => {
    const file = (name: string) =>
      readFileSync(new URL(`../fixtures/tls/${name}.pem`, import.meta.url), 'utf8');
    const secure = new EndpointServer({ key: file('key'), cert: file('cert') });
    try {
      const caller = new Caller(await secure.start());
      const error = (await caller.ask().catch((reason: unknown) => reason)) as BoqError;
      expect(error.code, error.message).to.equal('BOQ_VLM_TLS');
      expect(error.message).to.include('NODE_EXTRA_CA_CERTS').and.include('SELF_SIGNED');
      expect(caller.waits).to.deep.equal([]);
    } finally {
      await secure.stop();
    }
  });
});
