/** Pictures of a tab's viewport, in image pixels: CSS pixels times the device scale factor. */
import { BoqError } from '../../core/errors.js';
import type { Screenshot } from '../types.js';
import type { Channel } from './channel.js';

export interface ScreenshotSettings {
  format: 'png' | 'webp' | 'jpeg';
  /** 0 to 100 for webp and jpeg; png has none. */
  quality: number;
}

/** Longest wait for a first picture, in milliseconds: windows that draw are faster. */
const firstTryMs = 5000;

/**
 * Takes a picture of what the tab shows now.
 * @throws BoqError BOQ_TIMEOUT; BOQ_BROWSER where the page crashes
 */
export async function takePicture(channel: Channel, settings: ScreenshotSettings): Promise<Screenshot> {
  const { format, quality } = settings;
  const take = (ms: number) =>
    channel.call(
      (session) =>
        session.send('Page.captureScreenshot', {
          format,
          ...(format === 'png' ? {} : { quality }),
          optimizeForSpeed: true,
          captureBeyondViewport: false,
        }),
      'a screenshot',
      ms,
    );
  let picture: { data: string };
  try {
    picture = await take(Math.min(firstTryMs, channel.callMs));
  } catch (error) {
    if (!channel.isAlive) throw error;
    // A window in the background may stop drawing; in front it draws again.
    await channel.bringToFront();
    picture = await take(channel.callMs);
  }
  const bytes = Buffer.from(picture.data, 'base64');
  return { bytes, format, ...imageSize(bytes, format) };
}

/** Width and height from the header of what the browser wrote. */
function imageSize(bytes: Buffer, format: ScreenshotSettings['format']): { width: number; height: number } {
  if (format === 'png') return { width: bytes.readUInt32BE(16), height: bytes.readUInt32BE(20) };
  if (format === 'webp') {
    const kind = bytes.toString('latin1', 12, 16);
    if (kind === 'VP8X') return { width: bytes.readUIntLE(24, 3) + 1, height: bytes.readUIntLE(27, 3) + 1 };
    if (kind === 'VP8L') {
      const bits = bytes.readUInt32LE(21);
      return { width: (bits & 0x3fff) + 1, height: ((bits >> 14) & 0x3fff) + 1 };
    }
    return { width: bytes.readUInt16LE(26) & 0x3fff, height: bytes.readUInt16LE(28) & 0x3fff };
  }
  for (let at = 2; at < bytes.length; ) {
    const marker = bytes[at + 1] ?? 0;
    if (marker >= 0xc0 && marker <= 0xcf && ![0xc4, 0xc8, 0xcc].includes(marker)) {
      return { width: bytes.readUInt16BE(at + 7), height: bytes.readUInt16BE(at + 5) };
    }
    at += 2 + bytes.readUInt16BE(at + 2);
  }
  throw new BoqError('BOQ_BROWSER', 'expected a picture with a frame header, found none');
}
