/**
 * A local server that speaks OpenAI's chat protocol over real HTTP, well or badly. Replies are taken from a script,
 * one for each request; `otherwise` answers what the script does not.
 */
import {
  createServer,
  type IncomingMessage,
  type RequestListener,
  type Server,
  type ServerResponse,
} from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { AddressInfo } from 'node:net';

/** What is answered to one request. Without anything: an empty answer that ends well. */
export interface Reply {
  /** The answer's text, in the pieces in which it is streamed. */
  pieces?: readonly string[];
  /** null: the stream ends without its end mark. */
  finish?: string | null;
  /** null: the server does not count. */
  usage?: { prompt_tokens: number; completion_tokens: number } | null;
  refusal?: string;
  /** Thoughts that come before the text, in a field of their own. */
  reasoning?: string;
  /** A refusal of the request. */
  status?: number;
  body?: unknown;
  headers?: Record<string, string>;
  /** Sent as they are in place of a stream. */
  raw?: string;
  /** One JSON object although a stream was asked for. */
  isWhole?: boolean;
  /** Closes the connection without a word. */
  isDropped?: boolean;
  /** Takes the request and never answers. */
  isSilent?: boolean;
  /** Cuts the connection after so many pieces. */
  breakAfter?: number;
  /** Says nothing more after so many pieces, and keeps the connection. */
  hangAfter?: number;
  /** Milliseconds before the first piece and between pieces, for simulations. */
  beginMs?: number;
  pieceMs?: number;
}

export interface ReceivedRequest {
  url: string;
  authorization: string | undefined;
  body: WireRequest;
}

/** The request as far as tests look at it. */
export interface WireRequest {
  model: string;
  stream: boolean;
  messages: {
    role: string;
    content: string | { type: string; text?: string; image_url?: { url: string } }[];
  }[];
  response_format?: { type: string; json_schema?: { name: string; strict: boolean; schema: object } };
  temperature?: number;
  max_tokens?: number;
  max_completion_tokens?: number;
  stream_options?: object;
}

export class EndpointServer {
  /** Where it listens, or last did. */
  url = '';
  readonly requests: ReceivedRequest[] = [];
  script: (Reply | ((request: WireRequest) => Reply))[] = [];
  otherwise: Reply | ((request: WireRequest) => Reply) = { pieces: ['nothing more to say'] };
  /** When the last byte of the latest answer was handed to the socket, by `performance.now()`. */
  lastSent = 0;
  readonly #server: Server;
  readonly #timers = new Set<NodeJS.Timeout>();

  /** @param tls key and certificate, for a server behind TLS */
  constructor(tls?: { key: string; cert: string }) {
    const listener: RequestListener = (request, response) => void this.#answer(request, response);
    this.#server = tls ? createTlsServer(tls, listener) : createServer(listener);
  }

  /** @returns the base address of the API */
  async start(): Promise<string> {
    await new Promise<void>((resolve) => this.#server.listen(0, '127.0.0.1', resolve));
    const scheme = 'setSecureContext' in this.#server ? 'https' : 'http';
    this.url = `${scheme}://127.0.0.1:${(this.#server.address() as AddressInfo).port}/v1`;
    return this.url;
  }

  async stop(): Promise<void> {
    for (const timer of this.#timers) clearTimeout(timer);
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const body = JSON.parse(Buffer.concat(chunks).toString() || '{}') as WireRequest;
    const { authorization } = request.headers;
    this.requests.push({ url: request.url ?? '', authorization, body });
    const next = this.script.shift() ?? this.otherwise;
    await this.#play(typeof next === 'function' ? next(body) : next, response);
  }

  async #play(reply: Reply, response: ServerResponse): Promise<void> {
    const { status, body, headers, raw, isWhole, isDropped, isSilent } = reply;
    if (isSilent) return;
    if (isDropped) return void response.destroy();
    if (status !== undefined) {
      const text = typeof body === 'string' ? body : JSON.stringify(body ?? {});
      response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(text);
      return;
    }
    if (raw !== undefined) {
      response.writeHead(200, { 'content-type': 'text/event-stream', ...headers }).end(raw);
      return;
    }
    if (isWhole) {
      const message = { role: 'assistant', content: (reply.pieces ?? []).join('') };
      const whole = {
        choices: [{ index: 0, message, finish_reason: reply.finish ?? 'stop' }],
        usage: reply.usage,
      };
      response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(body ?? whole));
      return;
    }
    await this.#stream(reply, response);
  }

  async #stream(reply: Reply, response: ServerResponse): Promise<void> {
    const { pieces = [], finish = 'stop', usage = { prompt_tokens: 100, completion_tokens: 10 } } = reply;
    const send = (delta: object, finish_reason: string | null = null): void => {
      const chunk = {
        id: 'x',
        object: 'chat.completion.chunk',
        choices: [{ index: 0, delta, finish_reason }],
      };
      response.write(`data: ${JSON.stringify(chunk)}\n\n`);
    };
    response.writeHead(200, { 'content-type': 'text/event-stream', ...reply.headers });
    response.flushHeaders();
    await this.#pause(reply.beginMs);
    if (reply.reasoning) send({ reasoning_content: reply.reasoning });
    for (const [index, content] of pieces.entries()) {
      if (index === reply.hangAfter) return;
      if (index === reply.breakAfter) return void response.socket?.end();
      if (index > 0) await this.#pause(reply.pieceMs);
      send({ content });
      this.lastSent = performance.now();
    }
    if (reply.hangAfter === pieces.length) return;
    if (reply.breakAfter === pieces.length) return void response.socket?.end();
    if (reply.refusal) send({ refusal: reply.refusal });
    if (finish !== null) {
      send({}, finish);
      if (usage) response.write(`data: ${JSON.stringify({ choices: [], usage })}\n\n`);
      response.write('data: [DONE]\n\n');
    }
    response.end();
  }

  async #pause(ms = 0): Promise<void> {
    if (ms === 0) return;
    await new Promise<void>((resolve) => {
      const timer = setTimeout(() => {
        this.#timers.delete(timer);
        resolve();
      }, ms);
      this.#timers.add(timer);
    });
  }
}

/** One server for the tests of a suite; each test finds it started, with nothing scripted and nothing received. */
export function endpointForEachTest(): EndpointServer {
  const server = new EndpointServer();
  const { otherwise } = server;
  beforeEach(async () => {
    Object.assign(server, { script: [], otherwise });
    server.requests.length = 0;
    await server.start();
  });
  afterEach(() => server.stop());
  return server;
}

/** The text of a request's messages, in order. */
export function textOf({ messages }: WireRequest): string {
  return messages
    .map(({ content }) =>
      typeof content === 'string' ? content : content.map(({ text }) => text ?? '[image]').join('\n'),
    )
    .join('\n');
}

/** How many pictures a request holds. */
export function imagesOf({ messages }: WireRequest): string[] {
  return messages.flatMap(({ content }) =>
    typeof content === 'string' ? [] : content.flatMap(({ image_url }) => (image_url ? [image_url.url] : [])),
  );
}
