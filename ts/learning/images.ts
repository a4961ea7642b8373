/**
 * Encoded images to the RGB bytes that the native preprocessor takes. PNG, JPEG and WebP; transparency on white;
 * neither rotation nor colour profiles are applied, as in the reference.
 */
import sharp from 'sharp';
import { BoqError } from '../core/errors.js';
import type { NativeImage } from '../native/surface.js';

/** Beyond this a file is taken for a decompression bomb. */
const maxInputPixels = 100_000_000;

/**
 * Decodes on sharp's own threads.
 *
 * @param what names the image in messages, e.g. a path.
 * @throws BoqError BOQ_IMAGE_INVALID
 */
export async function decodeImage(bytes: Uint8Array, what = 'an image'): Promise<NativeImage> {
  try {
    if (bytes.length >= 26 && bytes[1] === 0x50 && bytes[2] === 0x4e && (bytes[24] ?? 8) > 8) {
      throw new Error(`samples of 8 bits are needed, this PNG has ${bytes[24]}`);
    }
    // Strict: a truncated file is an error, not a grey half.
    const { data, info } = await sharp(bytes, {
      failOn: 'error',
      ignoreIcc: true,
      limitInputPixels: maxInputPixels,
      sequentialRead: true,
    })
      .flatten({ background: '#ffffff' })
      .raw()
      .toBuffer({ resolveWithObject: true });
    const rgb = info.channels === 1 ? spread(data) : data;
    if (rgb.length !== info.width * info.height * 3) {
      throw new Error(`decoding gave ${info.channels} channels instead of 3`);
    }
    return { data: rgb, width: info.width, height: info.height };
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new BoqError('BOQ_IMAGE_INVALID', `${what} must be a readable PNG, JPEG or WebP: ${reason}`, {
      cause,
    });
  }
}

/** Grey to RGB. */
function spread(grey: Uint8Array): Uint8Array {
  const rgb = new Uint8Array(grey.length * 3);
  for (let i = 0; i < grey.length; i++) rgb.fill(grey[i] ?? 0, 3 * i, 3 * i + 3);
  return rgb;
}
