/**
 * Which model answers where. Each setting comes from the caller, else from the environment, else from a file; a role
 * (localizer, picker) that names no endpoint of its own uses the policy's.
 */
import { readFileSync } from 'node:fs';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { BoqError } from '../../core/errors.js';
import { nearestNames } from '../../core/nearest.js';
import type { Json } from '../../store/types.js';
import type { Price } from '../budget.js';
import {
  type AnswerFormat,
  addressPreset,
  answerFormats,
  type Preset,
  presetNames,
  presets,
} from './presets.js';

/** Who asks: the policy, the localizer, or the picker. */
export const roles = ['policy', 'localizer', 'picker'] as const;
export type Role = (typeof roles)[number];

/** What can be said about an endpoint. Everything but endpoint and model has a default. */
export interface EndpointOptions {
  /** A preset's name (openai, vllm, ...) or the address of an OpenAI-compatible API, e.g. http://host:8000/v1. */
  endpoint?: string;
  model?: string;
  apiKey?: string;
  /** The strictest form to ask for; default json_schema. A refusal steps down by itself. */
  format?: AnswerFormat;
  /** How screenshots are sent; default png. */
  imageFormat?: 'png' | 'jpeg';
  /** Screenshots with more pixels are made smaller; default 1,003,520. */
  maxPixels?: number;
  /** Longest answer, in tokens; default 2048. */
  maxOutputTokens?: number;
  /** The model's context, in tokens. Not needed: an overflow is noticed and mended. */
  contextTokens?: number;
  /** Attempts at one call; default 5. */
  attempts?: number;
  /** Pause before the second attempt, milliseconds; it doubles with each further one. Default 1000. */
  retryMs?: number;
  /** Longest wait for an answer to begin, milliseconds; default 120,000. */
  beginMs?: number;
  /** Longest silence within an answer, milliseconds; default 60,000. */
  silenceMs?: number;
  /** Sent with every request, e.g. {"chat_template_kwargs": {"enable_thinking": false}}. */
  extraBody?: { [name: string]: Json };
  /** Dollars for a million tokens. */
  price?: Price;
}

/** An endpoint with all defaults filled in. */
export interface EndpointSettings
  extends Required<Omit<EndpointOptions, 'endpoint' | 'apiKey' | 'contextTokens' | 'price'>> {
  /** Preset or address, without user name and password: fit for messages. */
  label: string;
  baseUrl: string;
  apiKey: string | null;
  contextTokens: number | null;
  price: Price | null;
  lengthField: Preset['lengthField'];
}

/** The file: an endpoint for all roles, and what differs for some. */
export interface VlmFile extends EndpointOptions {
  localizer?: EndpointOptions;
  picker?: EndpointOptions;
}

/** Where settings come from, the first that has one wins. */
export interface SettingsSources {
  options?: EndpointOptions;
  /** Default: the process's own. */
  environment?: NodeJS.ProcessEnv;
  /** Default: the one that BOQ_VLM_CONFIG names, if any. */
  file?: VlmFile;
}

const defaults = {
  maxPixels: 1_003_520,
  maxOutputTokens: 2048,
  attempts: 5,
  retryMs: 1000,
  beginMs: 120_000,
  silenceMs: 60_000,
  extraBody: {},
} as const;

/**
 * Settings of one role.
 * @throws BOQ_VLM_ENDPOINT where endpoint or model are not named, BOQ_VLM_KEY where a service needs a key,
 *   BOQ_FILE_NOT_FOUND and BOQ_CONFIG_INVALID of the file that the environment names
 */
export function resolveEndpoint(role: Role, sources: SettingsSources = {}): EndpointSettings {
  const merged = merge(role, sources);
  const { endpoint, model } = merged;
  if (!endpoint || !model) {
    throw new BoqError(
      'BOQ_VLM_ENDPOINT',
      `Expected ${endpoint ? 'a model' : 'an endpoint'} for the ${role}: give --endpoint (${presetNames.join(', ')}, or an ` +
        'address) and --vlm-model, or set BOQ_VLM_ENDPOINT and BOQ_VLM_MODEL.',
    );
  }
  const preset = presetOf(endpoint);
  const { keyVariable } = preset;
  const environment = sources.environment ?? process.env;
  const apiKey = merged.apiKey || (keyVariable && environment[keyVariable]) || null;
  if (keyVariable && !apiKey) {
    throw new BoqError(
      'BOQ_VLM_KEY',
      `Expected a key for ${endpoint}: set ${keyVariable} or BOQ_VLM_API_KEY.`,
    );
  }
  const { format, lengthField, imageFormat } = preset;
  const { price = null, contextTokens = null, ...rest } = merged;
  return {
    ...defaults,
    ...{ format, lengthField, imageFormat },
    ...rest,
    ...{ model, price, contextTokens, apiKey },
    baseUrl: preset.baseUrl,
    label: labelOf(endpoint),
  };
}

/** One object from all sources; a role's own endpoint takes nothing over from the general one, its key least of all. */
function merge(role: Role, { options, environment = process.env, file }: SettingsSources): EndpointOptions {
  const { BOQ_VLM_CONFIG } = environment;
  const { localizer, picker, ...general } = file ?? (BOQ_VLM_CONFIG ? readVlmFile(BOQ_VLM_CONFIG) : {});
  const ownFile = role === 'policy' ? undefined : { localizer, picker }[role];
  const own = combine(role === 'policy' ? {} : fromEnvironment(environment, role.toUpperCase()), ownFile);
  const shared = combine(options, fromEnvironment(environment, 'VLM'), general);
  return own.endpoint === undefined ? combine(own, shared) : own;
}

function fromEnvironment(environment: NodeJS.ProcessEnv, name: string): EndpointOptions {
  const [endpoint, model, apiKey] = ['ENDPOINT', 'MODEL', 'API_KEY'].map(
    (part) => environment[`BOQ_${name}_${part}`] || undefined,
  );
  return combine({ endpoint, model, apiKey } as EndpointOptions);
}

/** Earlier ones win; what is undefined does not count. */
function combine(...all: (EndpointOptions | undefined)[]): EndpointOptions {
  const entries = all
    .reverse()
    .flatMap((one) => Object.entries(one ?? {}).filter(([, value]) => value !== undefined));
  return Object.fromEntries(entries);
}

function presetOf(endpoint: string): Preset {
  if (Object.hasOwn(presets, endpoint)) return presets[endpoint]!;
  if (/^https?:\/\//i.test(endpoint) && URL.canParse(endpoint)) {
    return addressPreset(endpoint.replace(/\/+$/, '').replace(/\/chat\/completions$/, ''));
  }
  throw new BoqError(
    'BOQ_VLM_ENDPOINT',
    `Expected an endpoint's address such as http://localhost:8000/v1, or one of ${presetNames.join(', ')}, got ` +
      `"${labelOf(endpoint)}": did you mean ${nearestNames(endpoint, presetNames)[0]}?`,
  );
}

/** An address without user name, password and query, which may hold keys. */
function labelOf(endpoint: string): string {
  if (!URL.canParse(endpoint) || Object.hasOwn(presets, endpoint)) return endpoint;
  const { protocol, host, pathname } = new URL(endpoint);
  return `${protocol}//${host}${pathname}`;
}

const text = { type: 'string', minLength: 1 } as const;
const count = { type: 'integer', minimum: 1 } as const;
const endpointProperties = {
  endpoint: text,
  model: text,
  apiKey: text,
  format: { enum: answerFormats },
  imageFormat: { enum: ['png', 'jpeg'] },
  maxPixels: count,
  maxOutputTokens: count,
  contextTokens: count,
  attempts: count,
  retryMs: { type: 'integer', minimum: 0 },
  beginMs: count,
  silenceMs: count,
  extraBody: { type: 'object' },
  price: {
    type: 'object',
    properties: { input: { type: 'number', minimum: 0 }, output: { type: 'number', minimum: 0 } },
    required: ['input', 'output'],
    additionalProperties: false,
  },
};
const endpointSchema = { type: 'object', properties: endpointProperties, additionalProperties: false };
const validateFile = new Ajv2020({ allErrors: true }).compile({
  ...endpointSchema,
  properties: { ...endpointProperties, localizer: endpointSchema, picker: endpointSchema },
});

/** @throws BOQ_FILE_NOT_FOUND, BOQ_CONFIG_INVALID with every fault and the nearest key; values are not quoted */
export function readVlmFile(path: string): VlmFile {
  let content: string;
  try {
    content = readFileSync(path, 'utf8');
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    throw new BoqError('BOQ_FILE_NOT_FOUND', `Expected settings of a model at ${path}: ${code}.`);
  }
  let value: unknown;
  try {
    value = JSON.parse(content);
  } catch {
    throw new BoqError('BOQ_CONFIG_INVALID', `Expected JSON in ${path}: it cannot be parsed.`);
  }
  if (validateFile(value)) return value as VlmFile;
  const known = [...Object.keys(endpointProperties), 'localizer', 'picker'];
  const faults = (validateFile.errors ?? []).map(({ instancePath, message, params }) => {
    const extra = params['additionalProperty'];
    const place = instancePath.slice(1).replaceAll('/', '.') || 'the file';
    if (typeof extra !== 'string') return `${place} ${message ?? 'is wrong'}`;
    return `${place} has no "${extra}" (did you mean ${nearestNames(extra, known)[0]}?)`;
  });
  throw new BoqError('BOQ_CONFIG_INVALID', `In ${path}: ${[...new Set(faults)].join('; ')}.`);
}
