/**
 * How models that find elements want to be asked, and what their numbers mean. A new one is an entry here. The questions
 * to Holo1 and Holo1.5 are those that these models were trained on (their model cards, Hcompany/Holo1-7B and
 * Hcompany/Holo1.5-7B).
 */
import type { JsonSchema } from '../vlm/index.js';
import { objectOf } from '../vlm/index.js';
import type { ResizeRule, Size } from './smart-resize.js';

/** What a model says: a point in its own units, or that it sees none. */
export type Pointed = { x: number; y: number } | null;

export interface GroundingFormat {
  readonly resize: ResizeRule;
  /** Pixels of the picture as it was sent, or thousandths of its sides. */
  readonly unit: 'pixel' | 'thousandth';
  readonly schema: JsonSchema | null;
  question(description: string, size: Size): string;
  /** undefined where the answer cannot be read. */
  read(answer: string): Pointed | undefined;
}

const qwen25: ResizeRule = { factor: 28, minPixels: 56 * 56, maxPixels: 1280 * 28 * 28 };
const qwen3: ResizeRule = { factor: 32, minPixels: 64 * 32 * 32, maxPixels: 1280 * 32 * 32 };

function pointSchema(properties: JsonSchema): JsonSchema {
  return { type: 'object', properties, required: Object.keys(properties), additionalProperties: false };
}
const plainPoint = pointSchema({ x: { type: 'integer' }, y: { type: 'integer' } });

/** Python's spelling of a schema, single quotes and all, because that is what Holo1.5 was shown. */
const holo15Schema =
  "{'description': 'Click at absolute coordinates.', 'properties': {'action': {'const': 'click_absolute', 'default': 'click_absolute', " +
  "'title': 'Action', 'type': 'string'}, 'x': {'description': 'The x coordinate, number of pixels from the left edge.', 'title': 'X', " +
  "'type': 'integer'}, 'y': {'description': 'The y coordinate, number of pixels from the top edge.', 'title': 'Y', 'type': 'integer'}}, " +
  "'required': ['x', 'y'], 'title': 'ClickAbsoluteAction', 'type': 'object'}";

export const groundingFormats: Readonly<Record<string, GroundingFormat>> = {
  holo1: {
    resize: qwen25,
    unit: 'pixel',
    schema: null,
    question: (description) =>
      'Localize an element on the GUI image according to my instructions and output a click position as Click(x, y) with ' +
      `x num pixels from the left edge and y num pixels from the top edge.\n${description}`,
    read: readPoint,
  },
  'holo1.5': {
    resize: qwen25,
    unit: 'pixel',
    schema: pointSchema({
      action: { const: 'click_absolute' },
      x: { type: 'integer' },
      y: { type: 'integer' },
    }),
    question: (description) =>
      'Localize an element on the GUI image according to the provided target and output a click position.\n' +
      ` * You must output a valid JSON following the format: ${holo15Schema}\n Your target is:\n\n${description}`,
    read: readPoint,
  },
  holo2: { resize: qwen3, unit: 'thousandth', schema: plainPoint, question: thousandths, read: readPoint },
  'qwen3-vl': {
    resize: qwen3,
    unit: 'thousandth',
    schema: plainPoint,
    question: thousandths,
    read: readPoint,
  },
  'qwen2.5-vl': {
    resize: qwen25,
    unit: 'pixel',
    schema: plainPoint,
    question: (description, { width, height }) =>
      `The picture of a web page is ${width} pixels wide and ${height} pixels high. Give the point in the middle of one element as JSON, ` +
      `{"x": pixels from the left edge, "y": pixels from the top edge}; {"x": -1, "y": -1} if it is not there.\nElement: ${description}`,
    read: readPoint,
  },
};

function thousandths(description: string): string {
  return (
    'Give the point in the middle of one element of this picture of a web page as JSON, {"x": ..., "y": ...}, both from 0 to 1000: 0 is the ' +
    `left or top edge, 1000 the right or bottom edge; {"x": -1, "y": -1} if it is not there.\nElement: ${description}`
  );
}

const number = String.raw`(-?\d+(?:\.\d+)?)`;
const clickForm = new RegExp(
  String.raw`Click\(\s*(?:x\s*=\s*)?${number}\s*,\s*(?:y\s*=\s*)?${number}\s*\)`,
  'i',
);

/** Every form in which these models name a point, or a box whose middle is meant; nothing looser than that. */
function readPoint(answer: string): Pointed | undefined {
  const click = clickForm.exec(answer);
  if (click) return pointOf(Number(click[1]), Number(click[2]));
  const object = objectOf(answer);
  if (!object) return undefined;
  const { x, y, point_2d, bbox_2d, coordinate, coordinates } = object;
  if (x === null || y === null) return null;
  if (typeof x === 'number' && typeof y === 'number') return pointOf(x, y);
  const numbers = [point_2d, coordinate, coordinates, bbox_2d].find(Array.isArray) as unknown[] | undefined;
  if (!numbers?.every((value): value is number => typeof value === 'number')) return undefined;
  const [a, b, c, d] = numbers as number[];
  if (numbers.length === 4) return pointOf((a! + c!) / 2, (b! + d!) / 2);
  return numbers.length === 2 ? pointOf(a!, b!) : undefined;
}

/** Minus one is how a model was told to say that there is nothing. */
function pointOf(x: number, y: number): Pointed {
  return x === -1 && y === -1 ? null : { x, y };
}
