/**
 * The size at which Qwen's vision models see a picture: sides that are multiples of a patch, and a number of pixels
 * between two bounds. A picture of exactly this size is not resized again by the server, so that the model's pixels
 * are those that were sent. As `smart_resize` of the Qwen2-VL image processor in Hugging Face transformers does it.
 */
import { BoqError } from '../../core/errors.js';

export interface Size {
  width: number;
  height: number;
}

export interface ResizeRule {
  /** Sides are multiples of it. */
  factor: number;
  minPixels: number;
  maxPixels: number;
}

/** @throws BOQ_LOCALIZER for pictures with a side ratio above 200 */
export function smartResize({ width, height }: Size, { factor, minPixels, maxPixels }: ResizeRule): Size {
  if (!(Math.min(width, height) >= 1) || Math.max(width, height) / Math.min(width, height) > 200) {
    throw new BoqError(
      'BOQ_LOCALIZER',
      `Expected a screenshot with a side ratio of at most 200 for a localizer, got ${width}x${height}: change the viewport.`,
    );
  }
  const whole = (side: number, round: (value: number) => number): number => round(side / factor) * factor;
  let size = { width: whole(width, roundHalfToEven), height: whole(height, roundHalfToEven) };
  if (size.width * size.height > maxPixels) {
    const shrink = Math.sqrt((height * width) / maxPixels);
    size = {
      width: Math.max(factor, whole(width / shrink, Math.floor)),
      height: Math.max(factor, whole(height / shrink, Math.floor)),
    };
  } else if (size.width * size.height < minPixels) {
    const grow = Math.sqrt(minPixels / (height * width));
    size = { width: whole(width * grow, Math.ceil), height: whole(height * grow, Math.ceil) };
  }
  return size;
}

/** As Python rounds; `Math.round` would go up from 2.5. */
function roundHalfToEven(value: number): number {
  const down = Math.floor(value);
  if (value - down !== 0.5) return Math.round(value);
  return down % 2 === 0 ? down : down + 1;
}
