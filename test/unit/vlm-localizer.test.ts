/** Models that find elements: sizes, units, bounds, misses, and who is asked next. */
import { readFileSync } from 'node:fs';
import { expect } from 'chai';
import sharp from 'sharp';
import { FallbackLocalizer } from '../../ts/agent/localizer/fallback.js';
import { PageLocalizer } from '../../ts/agent/localizer/page.js';
import { createLocalizer } from '../../ts/agent/localizer/registry.js';
import { smartResize } from '../../ts/agent/localizer/smart-resize.js';
import { VlmLocalizer } from '../../ts/agent/localizer/vlm-localizer.js';
import type { Observation } from '../../ts/agent/types.js';
import { openClient } from '../../ts/agent/vlm/index.js';
import { isBoqError } from '../../ts/core/errors.js';
import { endpointForEachTest, imagesOf, type Reply, textOf } from '../support/endpoint-server.js';
import { element, observation } from '../support/page-elements.js';

type Sizes = [factor: number, low: number, high: number, width: number, height: number, w: number, h: number];
const sizes = JSON.parse(
  readFileSync(new URL('../fixtures/smart-resize.json', import.meta.url), 'utf8'),
) as Sizes[];

describe('smartResize', () => {
  it('agrees with the reference on every size', () => {
    expect(sizes.length).to.be.greaterThan(100);
    for (const [factor, minPixels, maxPixels, width, height, w, h] of sizes) {
      const size = smartResize({ width, height }, { factor, minPixels, maxPixels });
      expect(size, `${width}x${height} by ${factor}`).to.deep.equal({ width: w, height: h });
    }
  });

  it('refuses what the model would refuse', () => {
    const rule = { factor: 28, minPixels: 3136, maxPixels: 1_003_520 };
    for (const size of [
      { width: 2010, height: 10 },
      { width: 0, height: 10 },
    ]) {
      expect(() => smartResize(size, rule))
        .to.throw()
        .and.have.property('code', 'BOQ_LOCALIZER');
    }
  });
});

/** A page of 1000 x 500 CSS pixels, photographed at a scale; one button right in a region. */
async function page(scale = 1): Promise<Observation> {
  const [width, height] = [1000 * scale, 500 * scale];
  const bytes = await sharp({ create: { width, height, channels: 3, background: '#eee' } })
    .png()
    .toBuffer();
  const small = { x: 480, y: 230, width: 40, height: 40 };
  return {
    ...observation([
      element('region', 'Basket', { box: { x: 400, y: 200, width: 400, height: 200 } }),
      element('button', 'Buy', { box: small }),
    ]),
    viewport: { width: 1000, height: 500, deviceScaleFactor: scale },
    screenshot: { bytes, format: 'png', width, height },
  };
}

describe('VLM localizers', () => {
  const server = endpointForEachTest();

  const open = (form: string) =>
    new VlmLocalizer(
      openClient('localizer', {
        options: { endpoint: server.url, model: 'm', attempts: 2, retryMs: 1 },
        environment: {},
      }),
      form,
    );

  async function locate(form: string, answer: string | Reply, scale = 1) {
    server.otherwise = typeof answer === 'string' ? { pieces: [answer] } : answer;
    return open(form).locate('the green button', await page(scale));
  }

  // The page is sent as 1008 x 504 by a patch of 28 and as 992 x 512 by one of 32; at twice the scale, larger.
  for (const [form, answer, middle] of [
    ['holo1', (x, y) => `Click(${x(0.5)}, ${y(0.5)})`, [500, 250]],
    ['holo1.5', (x, y) => `{"action": "click_absolute", "x": ${x(0.5)}, "y": ${y(0.5)}}`, [500, 250]],
    ['holo1.5', (x, y) => `{"x": ${x(0.25)}, "y": ${y(0.25)}}`, [250, 125]],
    ['qwen2.5-vl', (x, y) => `\`\`\`json\n[{"point_2d": [${x(0.5)}, ${y(0.5)}]}]\n\`\`\``, [500, 250]],
    ['qwen2.5-vl', (x, y) => `{"bbox_2d": [${x(0.25)}, ${y(0.25)}, ${x(0.75)}, ${y(0.5)}]}`, [500, 187.5]],
    ['holo2', () => '{"x": 500, "y": 500}', [500, 250]],
    ['qwen3-vl', () => '{"x": 250, "y": 1000}', [250, 499]],
  ] as [string, (x: (share: number) => number, y: (share: number) => number) => string, [number, number]][]) {
    for (const scale of [1, 2]) {
      const patch = ['holo2', 'qwen3-vl'].includes(form) ? 32 : 28;
      const size = {
        28: { 1: [1008, 504], 2: [1400, 700] },
        32: { 1: [992, 512], 2: [1600, 800] },
      }[patch]![scale as 1 | 2] as [number, number];
      const words = answer(
        (share) => share * size[0],
        (share) => share * size[1],
      );
      it(`${form} answers ${words.replace(/\s+/g, ' ')} at scale ${scale}`, async () => {
        const found = await locate(form, words, scale);
        if (!found.found) return expect.fail(found.message);
        expect(found.point.x).to.be.closeTo(middle[0], 1e-9);
        expect(found.point.y).to.be.closeTo(middle[1], 1e-9);
        expect(found.usage).to.deep.equal([
          { purpose: 'localizer', model: 'm', inputTokens: 100, outputTokens: 10 },
        ]);
        const { body } = server.requests[0]!;
        const [image] = imagesOf(body);
        const sent = await sharp(Buffer.from(image!.split(',')[1]!, 'base64')).metadata();
        expect([sent.width, sent.height]).to.deep.equal(size);
        expect(textOf(body)).to.include('the green button');
        expect(body.temperature).to.equal(0);
      });
    }
  }

  it('names the smallest element under the point, else what was asked for', async () => {
    expect(await locate('holo2', '{"x": 500, "y": 500}')).to.include({ element: 'button "Buy"' });
    expect(await locate('holo2', '{"x": 600, "y": 500}')).to.include({ element: 'region "Basket"' });
    expect(await locate('holo2', '{"x": 10, "y": 10}')).to.include({ element: 'the green button' });
  });

  for (const [name, form, answer, words] of [
    ['right of the picture', 'holo1', 'Click(1009, 20)', 'outside the screenshot'],
    ['a percentage of something', 'holo2', '{"x": 500, "y": 1001}', 'outside the screenshot'],
    ['negative numbers', 'holo1.5', '{"x": -5, "y": 3}', 'outside the screenshot'],
    ['nothing there', 'qwen2.5-vl', '{"x": -1, "y": -1}', 'not on the screenshot'],
    ['null', 'qwen3-vl', '{"x": null, "y": null}', 'not on the screenshot'],
    ['prose', 'holo1', 'The button is at the top, (20, 30) or so.', 'names no point'],
    ['a list of three', 'qwen2.5-vl', '{"point_2d": [1, 2, 3]}', 'names no point'],
  ] as const) {
    it(`reports a miss: ${name}`, async () => {
      const found = await locate(form, answer);
      expect(found.found).to.equal(false);
      expect((found as { message: string }).message)
        .to.include('the green button')
        .and.include(words);
      expect(found.usage).to.have.length(1);
    });
  }

  it('asks once more for an answer that broke off', async () => {
    server.script = [{ pieces: ['Click(50'], finish: null }, { pieces: ['Click(504, 252)'] }];
    const found = await open('holo1').locate('the green button', await page());
    expect(found.found).to.equal(true);
    expect(found.usage).to.have.length(2);
  });

  it('fails where the model cannot be asked, and tells what that cost', async () => {
    const error = await locate('holo1', { status: 500, body: {} }).catch((reason: unknown) => reason);
    expect(error).to.satisfy((reason: unknown) => isBoqError(reason, 'BOQ_VLM_BUSY'));
    expect((error as { details: { usage: unknown[] } }).details.usage).to.have.length(2);
  });

  it('falls back to the page, and tells of both where both miss', async () => {
    server.otherwise = { pieces: ['Click(9999, 1)'] };
    const both = new FallbackLocalizer([open('holo1'), new PageLocalizer()]);
    const found = await both.locate('button "Buy"', await page());
    expect(found).to.deep.include({ found: true, point: { x: 500, y: 250 }, element: 'button "Buy"' });
    expect(found.usage).to.have.length(1);
    const missed = await both.locate('link "Nowhere"', await page());
    expect(missed)
      .to.have.property('message')
      .that.includes('outside')
      .and.includes('no element on the page');
    expect(both.name).to.equal('holo1 m, else page');
    server.otherwise = { status: 401, body: {} };
    const error = await both.locate('button "Buy"', await page()).catch((reason: unknown) => reason);
    expect(error).to.satisfy((reason: unknown) => isBoqError(reason, 'BOQ_VLM_KEY'));
  });

  it('are made by name', () => {
    const setup = { options: { endpoint: server.url, model: 'm' }, environment: {} };
    expect(createLocalizer('page').name).to.equal('page');
    expect(createLocalizer('holo1.5, page', setup).name).to.equal('holo1.5 m, else page');
    expect(() => createLocalizer('holo1,5', setup)).to.throw('did you mean');
    expect(() => createLocalizer('holo2', { environment: {} })).to.throw('endpoint');
    expect(() => new VlmLocalizer(openClient('localizer', setup), 'holo3')).to.throw('did you mean holo');
  });
});
