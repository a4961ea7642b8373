/** A local server that speaks the model hub's protocol, with the faults of a real one on request. */
import { createHash } from 'node:crypto';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setImmediate as nextTurn } from 'node:timers/promises';

export const commit = 'c0ffee00c0ffee00c0ffee00c0ffee00c0ffee00';

export interface Fault {
  /** Part of the URL it applies to. */
  match: string;
  /** How many requests it spoils. */
  times: number;
  /** An answer of its own, or a connection that breaks after so many bytes of the body. */
  status?: number;
  headers?: Record<string, string>;
  breakAfter?: number;
  /** Bytes that the client has kept: the connection breaks when they have reached `breakAfter`, not while they travel. */
  kept?: () => Promise<number>;
  /** Sends these bytes instead of the file's. */
  instead?: Buffer;
  /** Sends the whole file whatever range was asked for. */
  ignoreRange?: boolean;
}

export class HubServer {
  readonly id = 'org/model';
  readonly files: Map<string, Buffer>;
  readonly requests: { url: string; range: string | undefined; token: string | undefined }[] = [];
  faults: Fault[] = [];
  license: unknown = 'apache-2.0';
  /** Where set, everything but this token is refused. */
  token: string | null = null;
  readonly #server: Server;

  constructor(files: Record<string, Buffer | string>) {
    this.files = new Map(Object.entries(files).map(([name, data]) => [name, Buffer.from(data)]));
    this.#server = createServer((request, response) => this.#answer(request, response));
  }

  async start(): Promise<string> {
    await new Promise<void>((resolve) => {
      this.#server.listen(0, '127.0.0.1', resolve);
    });
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  async stop(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  static isLarge(name: string): boolean {
    return name.endsWith('.safetensors') || name === 'tokenizer.json';
  }

  etag(name: string): string {
    const data = this.files.get(name) as Buffer;
    if (HubServer.isLarge(name)) return createHash('sha256').update(data).digest('hex');
    return createHash('sha1').update(`blob ${data.length}\0`).update(data).digest('hex');
  }

  #answer(request: IncomingMessage, response: ServerResponse): void {
    const url = request.url ?? '';
    const { range, authorization } = request.headers;
    this.requests.push({ url, range, token: authorization });
    const fault = this.faults.find(({ match, times }) => url.includes(match) && times > 0);
    if (fault !== undefined) fault.times--;
    if (fault?.status !== undefined) {
      response.writeHead(fault.status, fault.headers).end('{}');
      return;
    }
    if (this.token !== null && authorization !== `Bearer ${this.token}`) {
      response.writeHead(401, { 'content-type': 'application/json' }).end('{"error": "gated"}');
      return;
    }
    const base = `http://${request.headers.host}`;
    if (url.startsWith(`/api/models/${this.id}/revision/`)) this.#json(response, this.#info());
    else if (url.startsWith(`/api/models/${this.id}/tree/`)) this.#tree(url, base, response);
    else if (url.startsWith(`/${this.id}/resolve/${commit}/`)) {
      // As the hub does for large files: another address holds the bytes.
      const name = decodeURIComponent(url.slice(`/${this.id}/resolve/${commit}/`.length));
      if (!this.files.has(name)) response.writeHead(404).end();
      else if (HubServer.isLarge(name)) response.writeHead(302, { location: `${base}/cdn/${name}` }).end();
      else this.#file(name, range, fault, response);
    } else if (url.startsWith('/cdn/')) this.#file(url.slice('/cdn/'.length), range, fault, response);
    else response.writeHead(404).end();
  }

  #json(response: ServerResponse, value: unknown, headers: Record<string, string> = {}): void {
    response.writeHead(200, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(value));
  }

  #info(): unknown {
    return {
      _id: '1',
      id: this.id,
      sha: commit,
      private: false,
      gated: false,
      cardData: { license: this.license },
    };
  }

  /** Two entries a page. */
  #tree(url: string, base: string, response: ServerResponse): void {
    const names = [...this.files.keys()];
    const from = Number(new URL(url, base).searchParams.get('cursor') ?? 0);
    const entries = names.slice(from, from + 2).map((path) => {
      const size = (this.files.get(path) as Buffer).length;
      const oid = this.etag(path);
      return HubServer.isLarge(path)
        ? { type: 'file', path, size, oid: '0'.repeat(40), lfs: { oid, size, pointerSize: 130 } }
        : { type: 'file', path, size, oid };
    });
    const path = url.split('?')[0];
    const next = from + 2 < names.length ? { link: `<${base}${path}?cursor=${from + 2}>; rel="next"` } : {};
    this.#json(response, entries, next as Record<string, string>);
  }

  #file(name: string, range: string | undefined, fault: Fault | undefined, response: ServerResponse): void {
    const data = fault?.instead ?? (this.files.get(name) as Buffer);
    const start = fault?.ignoreRange ? 0 : Number(/^bytes=(\d+)-/.exec(range ?? '')?.[1] ?? 0);
    const body = data.subarray(start);
    const headers: Record<string, string | number> = { 'content-length': body.length };
    if (start > 0) headers['content-range'] = `bytes ${start}-${data.length - 1}/${data.length}`;
    response.writeHead(start > 0 ? 206 : 200, headers);
    if (fault?.breakAfter === undefined) {
      response.end(body);
      return;
    }
    response.write(body.subarray(0, fault.breakAfter));
    void this.#breakWhenKept(response, start + fault.breakAfter, fault.kept);
  }

  async #breakWhenKept(response: ServerResponse, bytes: number, kept?: () => Promise<number>): Promise<void> {
    while (!response.destroyed && kept !== undefined && (await kept()) < bytes) await nextTurn();
    response.destroy();
  }
}
