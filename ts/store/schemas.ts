/**
 * The JSON Schemas (2020-12) of everything in a run folder, and the one way in: text to a checked record, or
 * BOQ_RUN_INVALID with file and line. Fields that a newer minor version adds are let through, missing ones are not.
 */
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js';
import formatsModule from 'ajv-formats';
import { BoqError } from '../core/errors.js';
import {
  type AttemptRecord,
  type EpisodeRecord,
  outcomes,
  type RunRecord,
  type StepRecord,
} from './types.js';

/** Version of the run folder as a whole. Lines of steps.jsonl are of the version that their run.json names. */
export const runVersion = 1;

interface Schema {
  [keyword: string]: unknown;
}

const text: Schema = { type: 'string' };
const number: Schema = { type: 'number' };
const count: Schema = { type: 'integer', minimum: 0 };
const flag: Schema = { type: 'boolean' };
const list = (items: Schema): Schema => ({ type: 'array', items });
const nullable = (schema: Schema): Schema => ({ anyOf: [schema, { type: 'null' }] });
/** An object with all these properties; others are allowed. */
const record = (properties: Record<string, Schema>, optional: Record<string, Schema> = {}): Schema => ({
  type: 'object',
  properties: { ...properties, ...optional },
  required: Object.keys(properties),
});
const version: Schema = { const: runVersion };
const time: Schema = { type: 'string', format: 'date-time' };

const key = record({
  benchmark: text,
  task: text,
  seed: { type: 'integer' },
  policy: text,
  selector: text,
  generation: text,
  repeat: count,
});

const observation = record({
  url: text,
  title: text,
  viewport: record({ width: number, height: number, deviceScaleFactor: number }),
  scroll: record({ x: number, y: number }),
  screenshot: text,
  events: list(text),
});

const candidate = record({
  action: { type: 'object', properties: { type: text }, required: ['type'] },
  thought: text,
  note: text,
});

/** JSON schemas of all files of a run. */
export const schemas = {
  run: record({
    version,
    kind: { enum: ['collect', 'evaluate', 'agent'] },
    id: text,
    createdAt: time,
    config: { type: 'object' },
    seed: { type: 'integer' },
    versions: { type: 'object', additionalProperties: text },
    gitCommit: nullable(text),
  }),
  attempt: record({ version, key, instruction: text, startUrl: text, startedAt: time }),
  step: record({
    index: count,
    observation,
    candidates: { ...list(candidate), minItems: 1 },
    candidateErrors: list(record({ code: text, message: text, raw: text })),
    scores: nullable(record({ q: list(number), spread: list(number), v: number })),
    selection: record({ selector: text, index: count, reason: text }, { evidence: { type: 'object' } }),
    grounding: nullable(record({ localizer: text, point: record({ x: number, y: number }), element: text })),
    result: record({ ok: flag, message: text }),
    usage: list(record({ purpose: text, model: text, inputTokens: count, outputTokens: count })),
    timings: { type: 'object', additionalProperties: number },
  }),
  episode: record(
    {
      version,
      key,
      attempt: text,
      instruction: text,
      startUrl: text,
      outcome: { enum: outcomes },
      reward: number,
      rawReward: nullable(number),
      answer: nullable(text),
      steps: count,
      finalObservation: nullable(observation),
      startedAt: time,
      durationMs: number,
      stepsSha256: { type: 'string', pattern: '^[0-9a-f]{64}$' },
    },
    { costs: record({ proposals: count, steps: count, embeddings: count, starts: count }) },
  ),
} as const;

interface Records {
  run: RunRecord;
  attempt: AttemptRecord;
  step: StepRecord;
  episode: EpisodeRecord;
}

const ajv = new Ajv2020({ strict: true, allErrors: false });
// ajv-formats is CommonJS: its default export arrives wrapped or bare, depending on who loads it.
const addFormats = (formatsModule as { default?: unknown }).default ?? formatsModule;
(addFormats as (target: Ajv2020) => void)(ajv);
const validators = new Map<keyof Records, ValidateFunction>();

function validator(kind: keyof Records): ValidateFunction {
  let compiled = validators.get(kind);
  if (!compiled) {
    compiled = ajv.compile(schemas[kind]);
    validators.set(kind, compiled);
  }
  return compiled;
}

export interface Place {
  file: string;
  /** Counted from 1. */
  line?: number;
}

/**
 * Reads one record out of JSON text.
 * @throws BOQ_RUN_INVALID naming file, line and the first fault
 */
export function parseRecord<K extends keyof Records>(kind: K, json: string, place: Place): Records[K] {
  let value: unknown;
  try {
    value = JSON.parse(json);
  } catch (cause) {
    throw invalidRun(place, `expected JSON, ${(cause as Error).message}`, cause);
  }
  const found = (value as { version?: unknown } | null)?.version;
  if (kind !== 'step' && typeof found === 'number' && found !== runVersion) {
    throw invalidRun(
      place,
      `expected format version ${runVersion}, found ${found}: use the release of @boq/native that wrote it`,
    );
  }
  const validate = validator(kind);
  if (!validate(value)) {
    const fault = validate.errors?.[0];
    throw invalidRun(place, `expected a ${kind} record, ${fault?.instancePath || 'it'} ${fault?.message}`);
  }
  return value as Records[K];
}

/** The error for anything wrong in a run folder. */
export function invalidRun(place: Place, fault: string, cause?: unknown): BoqError {
  const where = place.line === undefined ? place.file : `${place.file}, line ${place.line}`;
  return new BoqError('BOQ_RUN_INVALID', `${where}: ${fault}.`, { cause, details: { ...place } });
}
