/**
 * A JSON Schema as endpoints take it under `strict`. They know a small part of the language; what they do not know is
 * left out here and checked afterwards by the full schema.
 */
import type { Json } from '../../store/types.js';
import type { JsonSchema } from './chat.js';

const kept = new Set([
  'type',
  'properties',
  'required',
  'additionalProperties',
  'items',
  'anyOf',
  'enum',
  'description',
]);

/** The portable schema, and whether every object in it lists all its properties as required, as `strict` demands. */
export function strictSchema(schema: JsonSchema): { strict: boolean; schema: JsonSchema } {
  const portable = simplify(schema);
  return { strict: isClosed(portable), schema: portable };
}

function simplify(schema: JsonSchema): JsonSchema {
  const simple: JsonSchema = {};
  for (const [name, value] of Object.entries(schema)) {
    if (name === 'const') simple['enum'] = [value];
    else if (name === 'properties')
      simple[name] = mapValues(value as JsonSchema, (one) => simplify(one as JsonSchema));
    else if (name === 'items') simple[name] = simplify(value as JsonSchema);
    else if (name === 'anyOf') simple[name] = (value as JsonSchema[]).map(simplify);
    else if (kept.has(name)) simple[name] = value;
  }
  const values = simple['enum'];
  if (!('type' in simple) && Array.isArray(values) && values.every((value) => typeof value === 'string')) {
    simple['type'] = 'string';
  }
  return simple;
}

function mapValues(object: JsonSchema, change: (value: Json) => Json): JsonSchema {
  return Object.fromEntries(Object.entries(object).map(([name, value]) => [name, change(value)]));
}

function isClosed(schema: JsonSchema): boolean {
  const { type, properties, required, additionalProperties, items, anyOf } = schema;
  if (type === 'object') {
    const names = Object.keys((properties ?? {}) as JsonSchema);
    const all = Array.isArray(required) && names.every((name) => required.includes(name));
    if (!all || additionalProperties !== false) return false;
  }
  const inner = [
    ...Object.values((properties ?? {}) as JsonSchema),
    ...(items ? [items] : []),
    ...(Array.isArray(anyOf) ? anyOf : []),
  ];
  return inner.every((one) => isClosed(one as JsonSchema));
}
