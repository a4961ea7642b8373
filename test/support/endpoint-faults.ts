/**
 * What endpoints do wrong, one fixture each: what the server sends, and how a call must end: with the answer, with an
 * answer that says why it is none, or with an error of this code.
 */
import type { EndReason } from '../../ts/agent/vlm/index.js';
import type { BoqErrorCode } from '../../ts/core/errors.js';
import type { Reply, WireRequest } from './endpoint-server.js';

export interface EndpointFault {
  /** Sent before the good answer; where there is none to come, `isForever`. */
  sent: (Reply | ((request: WireRequest) => Reply))[];
  isForever?: boolean;
  /** The server says nothing where something is expected, so that a time limit must pass. */
  isQuiet?: boolean;
  ends: 'answered' | Exclude<EndReason, 'stop'> | BoqErrorCode;
  /** Part of the message that a user reads. */
  says?: string;
  /** Pauses between the attempts, milliseconds. */
  waits?: number[];
  /** What the last request must look like. */
  asked?: (request: WireRequest) => boolean;
}

const error = (message: string, more: object = {}) => ({ error: { message, ...more } });
const refuse = (isWrong: (request: WireRequest) => boolean, reply: Reply) => (request: WireRequest) =>
  isWrong(request) ? reply : { pieces: ['fine'] };
const chunk = (value: object): string => `data: ${JSON.stringify(value)}\n\n`;

export const endpointFaults: Readonly<Record<string, EndpointFault>> = {
  'rate limit with seconds to wait': {
    sent: [{ status: 429, headers: { 'retry-after': '7' }, body: error('slow down') }],
    ends: 'answered',
    waits: [7000],
  },
  'rate limit with milliseconds to wait': {
    sent: [{ status: 429, headers: { 'retry-after-ms': '250', 'retry-after': '1' }, body: error('slow') }],
    ends: 'answered',
    waits: [250],
  },
  'rate limit that asks for an hour': {
    sent: [{ status: 429, headers: { 'retry-after': '3600' }, body: error('come back later') }],
    ends: 'BOQ_VLM_BUSY',
    says: '3600 seconds',
  },
  'overload for a while': {
    sent: [
      { status: 503, body: error('overloaded') },
      { status: 502, body: '<html>bad gateway</html>' },
    ],
    ends: 'answered',
    waits: [1000, 2000],
  },
  'overload for ever': {
    sent: [{ status: 500, body: error('internal') }],
    isForever: true,
    ends: 'BOQ_VLM_BUSY',
    says: 'tried 3 times',
    waits: [1000, 2000],
  },
  'connection dropped before the answer': { sent: [{ isDropped: true }], ends: 'answered', waits: [1000] },
  'connection broken before the first word': {
    sent: [{ pieces: ['x'], breakAfter: 0 }],
    ends: 'answered',
    waits: [1000],
  },
  'stream closed before the first word': { sent: [{ finish: null }], ends: 'answered', waits: [1000] },
  'connection broken within the answer': {
    sent: [{ pieces: ['half', ' an answer'], breakAfter: 1 }],
    ends: 'broken',
  },
  'stream that ends without its end mark': { sent: [{ pieces: ['half'], finish: null }], ends: 'broken' },
  'no answer at all': { sent: [{ isSilent: true }], isQuiet: true, ends: 'answered', waits: [1000] },
  'an answer that stops in the middle': {
    sent: [{ pieces: ['half', 'x'], hangAfter: 1 }],
    isQuiet: true,
    ends: 'broken',
  },
  'an error within the stream': {
    sent: [{ raw: chunk({ error: { message: 'engine died', code: 500 } }) }],
    ends: 'answered',
    waits: [1000],
  },
  'a piece of the stream that is no JSON': {
    sent: [{ raw: 'data: {"choices": [{"de\n\n' }],
    ends: 'answered',
    waits: [1000],
  },
  'one whole answer in place of a stream': { sent: [{ isWhole: true, pieces: ['fine'] }], ends: 'answered' },
  'an error in a body of status 200': {
    sent: [{ isWhole: true, body: error('provider is rate limited', { code: 429 }) }],
    ends: 'answered',
    waits: [1000],
  },
  'a web page in place of an answer': {
    sent: [{ raw: '<html></html>', headers: { 'content-type': 'text/html' } }],
    ends: 'BOQ_VLM_ENDPOINT',
    says: '/v1',
  },
  'no API at this path': {
    sent: [{ status: 404, body: { detail: 'Not Found' } }],
    ends: 'BOQ_VLM_ENDPOINT',
    says: '/v1',
  },
  'a wrong key': {
    sent: [
      (_) => ({
        status: 401,
        body: error('Incorrect API key provided: key-0123456789abcdef. Check your account.'),
      }),
    ],
    ends: 'BOQ_VLM_KEY',
    says: '[secret]',
  },
  'a key without rights': {
    sent: [{ status: 403, body: { message: 'forbidden' } }],
    ends: 'BOQ_VLM_KEY',
    says: 'forbidden',
  },
  'no credit left': {
    sent: [{ status: 429, body: error('You exceeded your current quota', { code: 'insufficient_quota' }) }],
    ends: 'BOQ_VLM_QUOTA',
  },
  'an unknown model': {
    sent: [{ status: 404, body: { object: 'error', message: 'The model `m` does not exist.', code: 404 } }],
    ends: 'BOQ_VLM_MODEL',
    says: 'no model "m"',
  },
  'an unknown model, with status 400': {
    sent: [{ status: 400, body: error('m is not a valid model ID') }],
    ends: 'BOQ_VLM_MODEL',
  },
  'a model without vision': {
    sent: [
      { status: 500, body: error('image input is not supported - hint: you may need to provide the mmproj') },
    ],
    ends: 'BOQ_VLM_VISION',
    says: 'choose one with vision',
  },
  'a model without vision, as a gateway says it': {
    sent: [{ status: 404, body: error('No endpoints found that support image input') }],
    ends: 'BOQ_VLM_VISION',
  },
  'a refused schema': {
    sent: [
      refuse((request) => request.response_format?.type === 'json_schema', {
        status: 400,
        body: { detail: [{ msg: 'response_format.type: json_schema is not supported' }] },
      }),
    ],
    ends: 'answered',
    asked: (request) => request.response_format?.type === 'json_object',
  },
  'refused JSON in every form, without a reason': {
    sent: Array(3).fill(refuse((request) => 'response_format' in request, { status: 422, body: '' })),
    ends: 'answered',
    asked: (request) => !('response_format' in request),
  },
  'a grammar that the server cannot compile': {
    sent: [{ status: 500, body: error('failed to parse grammar') }],
    ends: 'answered',
    waits: [],
    asked: (request) => request.response_format?.type === 'json_object',
  },
  'refused token counts': {
    sent: [{ status: 400, body: error('stream_options: extra fields not permitted') }],
    ends: 'answered',
    asked: (request) => !('stream_options' in request) && request.response_format?.type === 'json_schema',
  },
  'another name for the limit on the length': {
    sent: [
      {
        status: 400,
        body: error("Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead."),
      },
    ],
    ends: 'answered',
    asked: (request) => request.max_completion_tokens !== undefined && request.max_tokens === undefined,
  },
  'a refused temperature': {
    sent: [
      { status: 400, body: error('Only the default (1) value is supported.', { param: 'temperature' }) },
    ],
    ends: 'answered',
    asked: (request) => request.temperature === undefined && request.response_format?.type === 'json_schema',
  },
  'a refused system message': {
    sent: [{ status: 400, body: error('System role not supported by this template') }],
    ends: 'answered',
    asked: (request) => request.messages.every(({ role }) => role !== 'system'),
  },
  'messages too long for the context': {
    sent: [{ status: 400, body: error('too long', { code: 'context_length_exceeded' }) }],
    ends: 'answered',
    asked: (request) => JSON.stringify(request.messages).includes('level 1'),
  },
  'messages too large for a proxy': {
    sent: [{ status: 413, body: '<html>Payload Too Large</html>' }],
    ends: 'answered',
    asked: (request) => JSON.stringify(request.messages).includes('level 1'),
  },
  'a context that nothing fits': {
    sent: [{ status: 400, body: error("This model's maximum context length is 512 tokens.") }],
    isForever: true,
    ends: 'BOQ_VLM_CONTEXT',
  },
  'a refusal without a known reason': {
    sent: [{ status: 400, body: error('the moon is full') }],
    isForever: true,
    ends: 'BOQ_VLM_REQUEST',
    says: 'the moon is full',
  },
  'a model that refuses': { sent: [{ refusal: 'I would rather not.' }], ends: 'refusal', says: 'rather not' },
  'a content filter': { sent: [{ finish: 'content_filter' }], ends: 'refusal', says: 'content filter' },
  'an empty answer': { sent: [{ pieces: [] }], ends: 'empty' },
  'an answer cut off at its limit': { sent: [{ pieces: ['half an an'], finish: 'length' }], ends: 'length' },
  'white space without end': {
    sent: [{ pieces: Array(100).fill(' '.repeat(100)) }],
    ends: 'length',
    says: 'ran away',
  },
};
