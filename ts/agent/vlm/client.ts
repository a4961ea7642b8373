/**
 * Calls to one model behind an OpenAI-compatible endpoint. An answer is streamed; what passes by itself is tried
 * again, what the endpoint refuses is asked for in a simpler form, what is too long is shortened, and what none of
 * this helps ends in one error that says what to do. Every call is counted, failed ones too.
 */
import OpenAI from 'openai';
import type { ChatCompletionCreateParamsStreaming } from 'openai/resources/chat/completions';
import { BoqError } from '../../core/errors.js';
import { createMasker, type Masker } from '../../store/masking.js';
import type { Usage } from '../../store/types.js';
import {
  type ChatEvent,
  type ChatMessage,
  type ChatRequest,
  type EndReason,
  estimateTokens,
} from './chat.js';
import { BrokenAnswer, type Fault, faultOf } from './faults.js';
import { allFeatures, type Features, stepDown } from './features.js';
import { pictureUrl } from './pictures.js';
import { presets } from './presets.js';
import type { EndpointSettings } from './settings.js';
import { strictSchema } from './strict-schema.js';
import { Watch } from './watch.js';
import { tolerantFetch } from './wire.js';

export interface ChatClientHooks {
  /** Told in one sentence of waits, retries and what an endpoint refuses. */
  onNotice?: (notice: string) => void;
  /** How pauses are waited for. */
  pause?: (ms: number, signal?: AbortSignal) => Promise<void>;
}

/** A server that asks for more patience is taken for closed. */
const longestWaitMs = 120_000;
/** Characters of white space, or of anything, after which an answer counts as run away. */
const blankLimit = 2000;
const charactersAToken = 16;

export class ChatClient {
  readonly settings: Omit<EndpointSettings, 'apiKey'>;
  readonly #api: OpenAI;
  readonly #hooks: ChatClientHooks;
  readonly #mask: Masker;
  #features: Features;
  #wasReached = false;

  constructor({ apiKey, ...settings }: EndpointSettings, hooks: ChatClientHooks = {}) {
    this.settings = settings;
    this.#hooks = hooks;
    this.#mask = createMasker(apiKey ? [apiKey] : []);
    this.#features = allFeatures({ ...settings, apiKey });
    this.#api = new OpenAI({
      baseURL: settings.baseUrl,
      // The library wants one; the header below takes it back.
      apiKey: apiKey ?? 'none',
      adminAPIKey: null,
      organization: null,
      project: null,
      // Retries and time limits are ours: they must be counted and told.
      maxRetries: 0,
      timeout: 2 ** 31 - 1,
      logLevel: 'off',
      fetch: tolerantFetch,
      defaultHeaders: apiKey ? {} : { Authorization: null },
    });
  }

  get model(): string {
    return this.settings.model;
  }

  /**
   * One answer, piece by piece, with what it cost. What was said before a connection broke stays said: the answer then
   * ends with reason `broken`.
   * @throws BOQ_VLM_*, BOQ_TIMEOUT, BOQ_ABORTED
   */
  async *chat(request: ChatRequest): AsyncGenerator<ChatEvent> {
    let level = this.#firstLevel(request);
    for (let attempt = 1; ; ) {
      const messages = request.messages(level);
      if (!messages)
        throw this.#error('BOQ_VLM_CONTEXT', 'the messages do not fit, however short: raise the context');
      const call = new Call(this.#api, this.settings, this.#features, messages, request);
      let fault: Fault;
      try {
        const { reason, message } = yield* call.play();
        this.#wasReached = true;
        yield { type: 'usage', usage: call.usage };
        yield { type: 'end', reason, message: this.#mask(message) };
        return;
      } catch (error) {
        if (request.signal?.aborted) {
          yield { type: 'usage', usage: call.usage };
          throw aborted(request.signal);
        }
        fault = this.#faultOf(error, call);
        this.#wasReached ||= !['BOQ_VLM_UNREACHABLE', 'BOQ_VLM_TLS'].includes(fault.code);
      }
      yield { type: 'usage', usage: call.usage };
      if (call.hasSpoken) {
        yield { type: 'end', reason: 'broken', message: this.#mask(fault.message) };
        return;
      }
      if (fault.kind === 'overflow') level++;
      else if (!this.#askForLess(fault, request, call.features)) {
        if (fault.kind !== 'passing') throw this.#error(fault.code, fault.message);
        await this.#wait(fault, attempt++, request.signal);
      }
    }
  }

  /** Leaves out what is known not to fit. */
  #firstLevel({ messages }: ChatRequest): number {
    const { contextTokens, maxOutputTokens } = this.settings;
    let level = 0;
    if (contextTokens === null) return level;
    for (let shown = messages(0); shown; shown = messages(level)) {
      if (estimateTokens(shown) + maxOutputTokens <= contextTokens || !messages(level + 1)) break;
      level++;
    }
    return level;
  }

  #faultOf(error: unknown, call: Call): Fault {
    if (call.timedOut) return { kind: 'passing', code: 'BOQ_TIMEOUT', message: call.timedOut };
    const { model } = this.settings;
    const { hasImages } = call;
    const fault = faultOf(error, { model, hasImages, wasReached: this.#wasReached });
    if (!fault) throw error;
    return fault;
  }

  /** True where the endpoint is to be asked for less than `asked`. */
  #askForLess({ kind, words = '' }: Fault, { schema }: ChatRequest, asked: Features): boolean {
    if (kind === 'final') return false;
    // Another call found out while this one was under way.
    if (asked !== this.#features) return true;
    const less = stepDown(this.#features, words, {
      hasSchema: schema !== undefined,
      isExplicit: kind === 'passing',
    });
    if (!less) return false;
    this.#features = less.features;
    this.#notice(less.notice);
    return true;
  }

  async #wait({ code, message, waitMs }: Fault, attempt: number, signal?: AbortSignal): Promise<void> {
    const { attempts, retryMs } = this.settings;
    if (attempt >= attempts) throw this.#error(code, `${message}; tried ${attempt} times`);
    if (waitMs !== undefined && waitMs > longestWaitMs) {
      throw this.#error(code, `${message}; it asks to wait ${Math.round(waitMs / 1000)} seconds`);
    }
    const ms = waitMs ?? Math.min(retryMs * 2 ** (attempt - 1), longestWaitMs);
    this.#notice(`${message}; again in ${(ms / 1000).toFixed(1)} s`);
    await (this.#hooks.pause ?? pause)(ms, signal);
    if (signal?.aborted) throw aborted(signal);
  }

  #notice(text: string): void {
    this.#hooks.onNotice?.(this.#mask(`${this.settings.label}: ${text}.`));
  }

  /** The library's error is not passed on as a cause: it holds headers and whatever the endpoint echoed. */
  #error(code: BoqError['code'], message: string): BoqError {
    const { label, baseUrl, model } = this.settings;
    const place = Object.hasOwn(presets, label) ? `${label} (${baseUrl})` : label;
    const text = this.#mask(message).replace(/\.+$/, '');
    return new BoqError(code, `${place}: ${text}.`, { details: { endpoint: label, model } });
  }
}

/** One request and its answer. */
class Call {
  readonly hasImages: boolean;
  readonly features: Features;
  /** What was waited for too long; '' where nothing was. */
  timedOut = '';
  /** True once a part of the answer has been passed on. */
  hasSpoken = false;
  readonly #api: OpenAI;
  readonly #settings: Omit<EndpointSettings, 'apiKey'>;
  readonly #messages: readonly ChatMessage[];
  readonly #request: ChatRequest;
  #characters = 0;
  #reported: { prompt_tokens?: number; completion_tokens?: number } | null = null;
  /** True once the endpoint has begun to answer: from then on the call is paid for. */
  #hasBegun = false;

  constructor(
    api: OpenAI,
    settings: Omit<EndpointSettings, 'apiKey'>,
    features: Features,
    messages: readonly ChatMessage[],
    request: ChatRequest,
  ) {
    this.#api = api;
    this.#settings = settings;
    this.features = features;
    this.#messages = messages;
    this.#request = request;
    this.hasImages = messages.some(({ content }) => content.some(({ type }) => type === 'image'));
  }

  /** As the endpoint counted it; estimated where it did not; nothing for a call that it refused. */
  get usage(): Usage {
    const estimated = this.#hasBegun || this.timedOut ? estimateTokens(this.#messages) : 0;
    return {
      purpose: this.#request.purpose,
      model: this.#settings.model,
      inputTokens: this.#reported?.prompt_tokens ?? estimated,
      outputTokens: this.#reported?.completion_tokens ?? Math.ceil(this.#characters / 4),
    };
  }

  async *play(): AsyncGenerator<ChatEvent, { reason: EndReason; message: string }> {
    const { signal } = this.#request;
    const { beginMs, silenceMs, maxOutputTokens } = this.#settings;
    const watch = new Watch(signal);
    let finish: string | null = null;
    let refusal = '';
    let text = '';
    let blank = 0;
    try {
      const body = await this.#body();
      watch.expect(beginMs, `no answer began within ${beginMs / 1000} s`);
      const stream = await this.#api.chat.completions.create(body, { signal: watch.signal });
      for await (const chunk of stream) {
        this.#hasBegun = true;
        watch.expect(silenceMs, `the answer stopped for ${silenceMs / 1000} s`);
        this.#reported = chunk.usage ?? this.#reported;
        const choice = chunk.choices?.[0];
        if (!choice) continue;
        finish = choice.finish_reason ?? finish;
        refusal += choice.delta?.refusal ?? '';
        this.#characters += reasoningOf(choice.delta).length;
        const piece = choice.delta?.content ?? '';
        if (piece === '') continue;
        text += piece;
        this.#characters += piece.length;
        blank = piece.trim() === '' ? blank + piece.length : 0;
        this.hasSpoken ||= text.trim() !== '';
        yield { type: 'text', text: piece };
        if (blank > blankLimit || text.length > maxOutputTokens * charactersAToken) {
          return { reason: 'length', message: 'the answer ran away and was cut off' };
        }
      }
      // An aborted stream ends without an error.
      if (watch.signal.aborted) throw watch.signal.reason;
    } finally {
      this.timedOut = watch.missed;
      watch.end();
    }
    return this.#end(finish, refusal, text);
  }

  #end(finish: string | null, refusal: string, text: string): { reason: EndReason; message: string } {
    if (refusal || finish === 'content_filter') {
      return { reason: 'refusal', message: `the model refused: ${refusal || 'its content filter said no'}` };
    }
    // Nothing came before the connection closed: another attempt costs nothing.
    if (finish === null && text.trim() === '') throw new BrokenAnswer();
    if (finish === 'length') {
      const { maxOutputTokens } = this.#settings;
      return { reason: 'length', message: `the answer was cut off at ${maxOutputTokens} tokens` };
    }
    if (text.trim() === '') return { reason: 'empty', message: 'the answer was empty' };
    if (finish === null || finish === 'error') {
      return { reason: 'broken', message: 'the answer ended without its end mark' };
    }
    return { reason: 'stop', message: '' };
  }

  async #body(): Promise<ChatCompletionCreateParamsStreaming> {
    const { model, maxOutputTokens, extraBody } = this.#settings;
    const { format, lengthFields, temperature, usage, systemRole } = this.features;
    const { schema } = this.#request;
    const body = {
      ...extraBody,
      model,
      messages: await Promise.all(
        this.#messages.map((message) => this.#wireMessage(message, systemRole ? 'system' : 'user')),
      ),
      stream: true,
      ...(usage ? { stream_options: { include_usage: true } } : {}),
      ...(lengthFields[0] ? { [lengthFields[0]]: maxOutputTokens } : {}),
      ...(temperature && this.#request.temperature !== undefined
        ? { temperature: this.#request.temperature }
        : {}),
      ...(schema && format === 'json_object' ? { response_format: { type: 'json_object' } } : {}),
      ...(schema && format === 'json_schema'
        ? {
            response_format: {
              type: 'json_schema',
              json_schema: { name: schema.name, ...strictSchema(schema.schema) },
            },
          }
        : {}),
    };
    return body as ChatCompletionCreateParamsStreaming;
  }

  async #wireMessage(message: ChatMessage, systemRole: 'system' | 'user'): Promise<unknown> {
    const { content } = message;
    const role = message.role === 'system' ? systemRole : message.role;
    // Some servers take a list of parts from users only.
    if (content.every((part) => part.type === 'text')) {
      return { role, content: content.map(({ text }) => text).join('\n\n') };
    }
    const { imageFormat: format, maxPixels } = this.#settings;
    const parts = content.map(async (part) => {
      if (part.type === 'text') return part;
      const { screenshot, size } = part;
      const url = await pictureUrl(screenshot, { format, maxPixels, ...(size ? { size } : {}) });
      return { type: 'image_url', image_url: { url } };
    });
    return { role, content: await Promise.all(parts) };
  }
}

/** What a reasoning model thinks aloud; servers name it in two ways. It is paid for, and not part of the answer. */
function reasoningOf(delta: unknown): string {
  const { reasoning_content, reasoning } = (delta ?? {}) as Record<string, unknown>;
  const text = reasoning_content ?? reasoning;
  return typeof text === 'string' ? text : '';
}

function aborted(signal: AbortSignal): BoqError {
  return new BoqError('BOQ_ABORTED', 'The call of the model was stopped by its caller.', {
    cause: signal.reason,
  });
}

function pause(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const end = (): void => {
      clearTimeout(timer);
      signal?.removeEventListener('abort', end);
      resolve();
    };
    const timer = setTimeout(end, ms);
    signal?.addEventListener('abort', end);
    if (signal?.aborted) end();
  });
}
