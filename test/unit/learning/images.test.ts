import { expect } from 'chai';
import sharp from 'sharp';
import { decodeImage } from '../../../ts/learning/images.js';
import { rejection } from '../../support/rejection.js';

/** Noise, so that no format can hide an error in flat areas. */
function noise(width: number, height: number, channels: 1 | 3 | 4): Buffer {
  const data = Buffer.alloc(width * height * channels);
  for (let i = 0; i < data.length; i++) data[i] = Math.imul(i + 7, 2654435761) >>> 24;
  return data;
}

const raw = (width: number, height: number, channels: 1 | 3 | 4) => ({ raw: { width, height, channels } });

describe('image decoding', () => {
  it('gives the pixels of PNG and lossless WebP back', async () => {
    const pixels = noise(33, 17, 3);
    const image = sharp(pixels, raw(33, 17, 3));
    for (const bytes of [await image.png().toBuffer(), await image.webp({ lossless: true }).toBuffer()]) {
      const { data, width, height } = await decodeImage(bytes);
      expect([width, height]).to.deep.equal([33, 17]);
      expect(Buffer.compare(Buffer.from(data), pixels)).to.equal(0);
    }
  });

  it('decodes JPEG, and grey and palette images to three channels', async () => {
    const jpeg = await sharp(noise(40, 30, 3), raw(40, 30, 3))
      .jpeg()
      .toBuffer();
    expect((await decodeImage(jpeg)).data).to.have.length(40 * 30 * 3);
    const grey = noise(5, 4, 1);
    const greyPng = await sharp(grey, raw(5, 4, 1))
      .toColourspace('b-w')
      .png()
      .toBuffer();
    const { data } = await decodeImage(greyPng);
    expect([...data]).to.deep.equal([...grey].flatMap((value) => [value, value, value]));
    const palette = await sharp(noise(8, 8, 3), raw(8, 8, 3))
      .png({ palette: true, colours: 8 })
      .toBuffer();
    expect((await decodeImage(palette)).data).to.have.length(8 * 8 * 3);
  });

  it('puts transparency on white', async () => {
    const pixels = Buffer.from([10, 20, 30, 255, 10, 20, 30, 0]);
    const { data } = await decodeImage(
      await sharp(pixels, raw(2, 1, 4))
        .png()
        .toBuffer(),
    );
    expect([...data]).to.deep.equal([10, 20, 30, 255, 255, 255]);
  });

  it('names what is wrong with an image', async () => {
    const png = await sharp(noise(64, 64, 3), raw(64, 64, 3))
      .png()
      .toBuffer();
    const deep = await sharp(noise(8, 8, 3), raw(8, 8, 3))
      .toColourspace('rgb16')
      .png()
      .toBuffer();
    const cases: [string, Uint8Array, RegExp][] = [
      ['cut off', png.subarray(0, png.length / 2), /must be a readable PNG/],
      ['no image', Buffer.from('<html>'), /must be a readable PNG/],
      ['empty', new Uint8Array(0), /must be a readable PNG/],
      ['16 bits', deep, /8 bits are needed, this PNG has 16/],
    ];
    for (const [name, bytes, message] of cases) {
      const error = await rejection(decodeImage(bytes, 'shots/001.png'));
      expect(error.code, name).to.equal('BOQ_IMAGE_INVALID');
      expect(error.message, name).to.match(message).and.to.contain('shots/001.png');
    }
  });

  it('refuses an image that claims a gigantic size before it allocates anything', async () => {
    const png = await sharp(noise(8, 8, 3), raw(8, 8, 3))
      .png()
      .toBuffer();
    const bomb = Buffer.from(png);
    bomb.writeUInt32BE(60_000, 16);
    bomb.writeUInt32BE(60_000, 20);
    expect((await rejection(decodeImage(bomb))).code).to.equal('BOQ_IMAGE_INVALID');
  });
});
