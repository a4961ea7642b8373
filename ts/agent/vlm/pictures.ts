/** Screenshots as data addresses, encoded once for each size and format. */
import sharp from 'sharp';
import type { Screenshot } from '../types.js';

export interface PictureOptions {
  format: 'png' | 'jpeg';
  /** Exact size; the picture's own where left out, made smaller to `maxPixels`. */
  size?: { width: number; height: number };
  maxPixels: number;
}

const encoded = new WeakMap<Screenshot, Map<string, Promise<string>>>();

/** The screenshot as a `data:` address. */
export function pictureUrl(screenshot: Screenshot, options: PictureOptions): Promise<string> {
  const size = options.size ?? fitted(screenshot, options.maxPixels);
  const key = `${options.format} ${size.width} ${size.height}`;
  const known = encoded.get(screenshot) ?? new Map<string, Promise<string>>();
  encoded.set(screenshot, known);
  const url = known.get(key) ?? encode(screenshot, options.format, size);
  known.set(key, url);
  return url;
}

async function encode(
  { bytes, format, width, height }: Screenshot,
  wanted: 'png' | 'jpeg',
  size: { width: number; height: number },
): Promise<string> {
  if (format === wanted && width === size.width && height === size.height) {
    return dataUrl(wanted, Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength));
  }
  const picture = sharp(bytes).resize(size.width, size.height, { fit: 'fill', kernel: 'cubic' });
  const data = wanted === 'png' ? picture.png({ compressionLevel: 3 }) : picture.jpeg({ quality: 90 });
  return dataUrl(wanted, await data.toBuffer());
}

function dataUrl(format: string, data: Buffer): string {
  return `data:image/${format};base64,${data.toString('base64')}`;
}

/** The largest size of the same shape within so many pixels; never larger than the picture. */
export function fitted(
  { width, height }: { width: number; height: number },
  maxPixels: number,
): { width: number; height: number } {
  const scale = Math.min(1, Math.sqrt(maxPixels / (width * height)));
  return {
    width: Math.max(1, Math.floor(width * scale)),
    height: Math.max(1, Math.floor(height * scale)),
  };
}
