/**
 * `fetch` for servers that speak OpenAI's protocol more or less. Refusals come in five shapes and leave in one; an
 * answer that was not streamed although that was asked for becomes a stream of one piece; a page that is no API is
 * said to be none.
 */
import { BoqError } from '../../core/errors.js';

/** What a refusal says, whatever the server wraps it in. */
interface Refusal {
  message: string;
  type?: unknown;
  code?: unknown;
  param?: unknown;
}

const keptHeaders = ['retry-after', 'retry-after-ms', 'x-should-retry'];
const longestMessage = 600;

/** As the client library wants it. */
export async function tolerantFetch(url: string | URL | Request, init?: RequestInit): Promise<Response> {
  const response = await fetch(url, init);
  const type = response.headers.get('content-type') ?? '';
  if (!response.ok) return refusal(response, readRefusal(await response.text()));
  if (/\bhtml\b/i.test(type)) {
    await response.body?.cancel();
    throw new BoqError(
      'BOQ_VLM_ENDPOINT',
      'a web page came in place of an answer: is this the address of an API, with /v1 at its end?',
    );
  }
  if (!/\bjson\b/i.test(type) || /event-stream|ndjson/i.test(type)) return response;
  return fromWhole(response, await response.text());
}

/** A whole completion as a stream of one piece. */
function fromWhole(response: Response, text: string): Response {
  const value = parse(text);
  if (isRecord(value) && value['error']) {
    const fault = readRefusal(text);
    const code = Number(fault.code);
    return refusal(response, fault, code >= 400 && code < 600 ? code : 500);
  }
  const choices = isRecord(value) && Array.isArray(value['choices']) ? value['choices'] : [];
  const chunk = {
    ...(isRecord(value) ? value : {}),
    choices: choices.map((choice: unknown) =>
      isRecord(choice) ? { ...choice, delta: choice['message'] ?? {}, message: undefined } : choice,
    ),
  };
  return new Response(`data: ${JSON.stringify(chunk)}\n\ndata: [DONE]\n\n`, {
    headers: { 'content-type': 'text/event-stream' },
  });
}

function refusal(response: Response, error: Refusal, status = response.status): Response {
  const headers = new Headers({ 'content-type': 'application/json' });
  for (const name of keptHeaders) {
    const value = response.headers.get(name);
    if (value !== null) headers.set(name, value);
  }
  return new Response(JSON.stringify({ error }), { status, headers });
}

/** Known shapes: {error: {message}}, {error: "..."}, {message}, {detail: "..." | [{msg}]}, and plain text. */
function readRefusal(text: string): Refusal {
  const body = parse(text);
  if (!isRecord(body)) return { message: shorten(/<html|<!doctype/i.test(text) ? 'a web page' : text) };
  const { error, detail } = body;
  if (isRecord(error)) {
    const { message, type, code, param } = error;
    return { message: shorten(words(message ?? error)), type, code, param };
  }
  const { message, type, code, param } = body;
  return { message: shorten(words(error ?? message ?? detail ?? body)), type, code, param };
}

function words(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value);
}

function shorten(text: string): string {
  const clean = text.replace(/\s+/g, ' ').trim() || 'no explanation';
  return clean.length <= longestMessage ? clean : `${clean.slice(0, longestMessage)}…`;
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
