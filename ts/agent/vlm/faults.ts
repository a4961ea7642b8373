/** What went wrong with a call, and what can be done: wait, shorten, ask for less, or tell the user. */
import { APIConnectionError, APIError } from 'openai';
import { BoqError, type BoqErrorCode } from '../../core/errors.js';

/**
 * `passing`: another attempt may succeed; `overflow`: the messages are too long; `refused`: the endpoint does not take
 * the request as it is; `final`: only the user can help.
 */
export interface Fault {
  kind: 'passing' | 'overflow' | 'refused' | 'final';
  code: BoqErrorCode;
  /** One sentence, without the endpoint's name. */
  message: string;
  /** All that the endpoint said, for whoever looks for the name of a parameter. */
  words?: string;
  /** Milliseconds that the endpoint asks to wait. */
  waitMs?: number;
}

/** What was asked, as far as it explains a refusal. */
export interface Asked {
  model: string;
  hasImages: boolean;
  /** False until this endpoint has answered once: then it is not there, rather than gone for a moment. */
  wasReached: boolean;
}

const overflowWords =
  /context[ _](?:length|window|size)|maximum context|request too large|too many tokens|prompt is too long|input (?:is )?too long|exceeds? the (?:maximum|model|available)|longer than the (?:model|maximum)/i;
const imageWords = /image|vision|multi-?modal|mmproj/i;
const missingWords =
  /not support|unsupported|support image|does not|doesn't|is not|isn't|not a |no endpoints|missing|mmproj|only text|must be a string|string type|valid string/i;
const modelWords =
  /model[^.]{0,80}(?:not found|not exist|unknown|no access|not available)|(?:not found|not exist|unknown|invalid|not a valid)[^.]{0,40}model/i;
const quotaWords = /insufficient_quota|quota|billing|credit|balance/i;
const tlsCodes =
  /CERT|SELF_SIGNED|UNABLE_TO_(?:VERIFY|GET)|ERR_SSL|ERR_TLS|EPROTO|ALTNAME|WRONG_VERSION|HOSTNAME_MISMATCH/;

/** A stream that ended before anything was said. */
export class BrokenAnswer extends Error {}

/** The fault behind an error of the client library; null for one that it did not raise. */
export function faultOf(error: unknown, asked: Asked): Fault | null {
  const own = chain(error).find((one) => one instanceof BoqError);
  if (own instanceof BoqError) return { kind: 'final', code: own.code, message: own.message };
  if (error instanceof APIConnectionError) return connectionFault(error, asked);
  if (error instanceof APIError) return refusalFault(error, asked);
  if (error instanceof BrokenAnswer) {
    return {
      kind: 'passing',
      code: 'BOQ_VLM_ANSWER',
      message: 'the connection closed before an answer came',
    };
  }
  if (error instanceof SyntaxError) {
    return { kind: 'passing', code: 'BOQ_VLM_ANSWER', message: 'a piece of the answer is no JSON' };
  }
  // fetch says "terminated" where a connection breaks within a body.
  if (
    error instanceof TypeError &&
    chain(error).some(({ message }) => /terminated|closed|aborted|reset/i.test(message))
  ) {
    return { kind: 'passing', code: 'BOQ_VLM_UNREACHABLE', message: 'the connection broke off' };
  }
  return null;
}

function connectionFault(error: APIConnectionError, { wasReached }: Asked): Fault {
  const codes = chain(error).map((one) => String((one as { code?: unknown }).code ?? ''));
  const code = codes.find(Boolean) ?? '';
  if (tlsCodes.test(code)) {
    const hint = /SSL|EPROTO|WRONG_VERSION/.test(code)
      ? 'the other side does not speak TLS: is the address http:// rather than https://?'
      : 'its certificate is not trusted: set NODE_EXTRA_CA_CERTS to the file of its authority, or correct the address';
    return { kind: 'final', code: 'BOQ_VLM_TLS', message: `${hint} (${code})` };
  }
  if (code === 'ENOTFOUND' || chain(error).some(({ message }) => /bad port|invalid url/i.test(message))) {
    return { kind: 'final', code: 'BOQ_VLM_UNREACHABLE', message: 'no such host or port: check the address' };
  }
  if (code === 'ECONNREFUSED' && !wasReached) {
    const message = 'nothing listens there: start the server, or check host and port';
    return { kind: 'final', code: 'BOQ_VLM_UNREACHABLE', message };
  }
  const reason = code || chain(error).at(-1)?.message || 'no reason given';
  return { kind: 'passing', code: 'BOQ_VLM_UNREACHABLE', message: `the connection failed (${reason})` };
}

function refusalFault(error: APIError, { model, hasImages }: Asked): Fault {
  const body = (error.error ?? {}) as { message?: unknown; type?: unknown; code?: unknown; param?: unknown };
  const said = typeof body.message === 'string' ? body.message : error.message;
  const status = error.status ?? statusWithin(body.code);
  const all = [said, body.type, body.code, body.param].filter((word) => typeof word === 'string').join(' ');
  const because = `it says: ${said}${status ? ` (status ${status})` : ''}`;
  const final = (code: BoqErrorCode, message: string): Fault => ({ kind: 'final', code, message });

  if (status === 401 || status === 403) {
    return final(
      'BOQ_VLM_KEY',
      `the key was refused: set BOQ_VLM_API_KEY or the service's own variable; ${because}`,
    );
  }
  if (status === 402 || (status === 429 && quotaWords.test(all))) {
    return final('BOQ_VLM_QUOTA', `the account has nothing left to spend; ${because}`);
  }
  if (status === 413 || overflowWords.test(all)) {
    return { kind: 'overflow', code: 'BOQ_VLM_CONTEXT', message: because };
  }
  if (hasImages && imageWords.test(all) && missingWords.test(all) && !/response_?format/i.test(all)) {
    return final('BOQ_VLM_VISION', `the model ${model} takes no images: choose one with vision; ${because}`);
  }
  if (status === 404 || (status !== undefined && status < 500 && modelWords.test(all))) {
    return /model/i.test(all)
      ? final('BOQ_VLM_MODEL', `it has no model "${model}"; ${because}`)
      : final(
          'BOQ_VLM_ENDPOINT',
          `there is no chat API at this address: does it need /v1 at its end? ${because}`,
        );
  }
  if (
    status === undefined ||
    status === 408 ||
    status === 409 ||
    status === 425 ||
    status === 429 ||
    status >= 500
  ) {
    const waitMs = retryAfterMs(error.headers);
    return {
      // A server may say with any status that it cannot do what was asked; words decide there.
      kind: status === 501 ? 'refused' : 'passing',
      code: 'BOQ_VLM_BUSY',
      message: because,
      words: all,
      ...(waitMs === undefined ? {} : { waitMs }),
    };
  }
  return { kind: 'refused', code: 'BOQ_VLM_REQUEST', message: because, words: all };
}

/** Some gateways send the status within a body of status 200. */
function statusWithin(code: unknown): number | undefined {
  return typeof code === 'number' && code >= 400 && code < 600 ? code : undefined;
}

/** Seconds or a date, as HTTP allows, or milliseconds in a header of its own. */
export function retryAfterMs(headers: Headers | undefined, now = Date.now()): number | undefined {
  const exact = Number(headers?.get('retry-after-ms') ?? Number.NaN);
  if (exact >= 0) return exact;
  const text = headers?.get('retry-after')?.trim();
  if (!text) return undefined;
  const ms = /^\d+(\.\d+)?$/.test(text) ? Number(text) * 1000 : Date.parse(text) - now;
  return Number.isFinite(ms) ? Math.max(0, ms) : undefined;
}

/** The error and its causes. */
function chain(error: unknown): Error[] {
  const found: Error[] = [];
  for (let one = error; one instanceof Error && found.length < 8; one = one.cause) found.push(one);
  return found;
}
