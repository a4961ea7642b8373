/**
 * A model finds elements on the screenshot. The screenshot is sent at the very size at which the model sees it, and one
 * scale leads from its answer to the page's CSS pixels. What lies outside, or cannot be read, is a miss that the policy
 * hears of.
 */
import { BoqError } from '../../core/errors.js';
import { nearestNames } from '../../core/nearest.js';
import type { Point } from '../../store/types.js';
import type { Localizer, Observation } from '../types.js';
import { type ChatClient, type ChatRequest, complete } from '../vlm/index.js';
import { type GroundingFormat, groundingFormats, type Pointed } from './grounding-formats.js';
import { type Size, smartResize } from './smart-resize.js';

/** Names of the formats that a localizing model can have. */
export const groundingNames: readonly string[] = Object.keys(groundingFormats);

/** Calls for one element: an answer that broke off is asked for once more. */
const calls = 2;

export class VlmLocalizer implements Localizer {
  readonly name: string;
  readonly #client: ChatClient;
  readonly #format: GroundingFormat;

  /**
   * @param format how the model is asked and answers, one of {@link groundingNames}
   * @throws BOQ_USAGE for a format that is not known
   */
  constructor(client: ChatClient, format: string) {
    if (!Object.hasOwn(groundingFormats, format)) {
      const [nearest] = nearestNames(format, groundingNames);
      throw new BoqError('BOQ_USAGE', `Unknown form of localizer "${format}": did you mean ${nearest}?`);
    }
    this.#client = client;
    this.#format = groundingFormats[format]!;
    this.name = `${format} ${client.model}`;
  }

  async locate(
    description: string,
    observation: Observation,
    signal?: AbortSignal,
  ): ReturnType<Localizer['locate']> {
    const { screenshot } = observation;
    const size = smartResize(screenshot, this.#format.resize);
    const request = this.#request(description, observation, size, signal);
    const usage = [];
    let message = '';
    for (let call = 0; call < calls; call++) {
      const answer = await complete(this.#client, request);
      usage.push(...answer.usage);
      const pointed = this.#format.read(answer.text);
      if (pointed !== undefined) return { ...this.#place(description, pointed, observation, size), usage };
      message = answer.message || `its answer names no point: ${answer.text.trim().slice(0, 100)}`;
      if (answer.reason === 'stop' || answer.reason === 'refusal') break;
    }
    return { found: false, message: `${description} was not found: ${message}`, usage };
  }

  #request(
    description: string,
    { screenshot }: Observation,
    size: Size,
    signal: AbortSignal | undefined,
  ): ChatRequest {
    const { schema } = this.#format;
    const question = this.#format.question(description, size);
    return {
      purpose: 'localizer',
      messages: (level) =>
        level === 0
          ? [
              {
                role: 'user',
                content: [
                  { type: 'image', screenshot, size },
                  { type: 'text', text: question },
                ],
              },
            ]
          : null,
      ...(schema ? { schema: { name: 'point', schema } } : {}),
      temperature: 0,
      signal,
    };
  }

  /** The model's numbers on the page. */
  #place(
    description: string,
    pointed: Pointed,
    { viewport, elements }: Observation,
    size: Size,
  ): { found: true; point: Point; element: string } | { found: false; message: string } {
    if (!pointed) return { found: false, message: `${description} is not on the screenshot` };
    const whole = this.#format.unit === 'pixel' ? size : { width: 1000, height: 1000 };
    const right = pointed.x / whole.width;
    const down = pointed.y / whole.height;
    if (!(right >= 0 && right <= 1 && down >= 0 && down <= 1)) {
      const { x, y } = pointed;
      return {
        found: false,
        message: `${description} was looked for at (${x}, ${y}), outside the screenshot`,
      };
    }
    // The far edges belong to the last pixel.
    const point = {
      x: Math.min(right * viewport.width, viewport.width - 1),
      y: Math.min(down * viewport.height, viewport.height - 1),
    };
    return { found: true, point, element: elementAt(point, elements) ?? description };
  }
}

/** Words for the smallest element under a point. */
function elementAt({ x, y }: Point, elements: Observation['elements']): string | undefined {
  const under = elements.filter(
    ({ box }) => x >= box.x && x <= box.x + box.width && y >= box.y && y <= box.y + box.height,
  );
  const area = ({ box }: Observation['elements'][number]): number => box.width * box.height;
  return under.sort((a, b) => area(a) - area(b))[0]?.description;
}
