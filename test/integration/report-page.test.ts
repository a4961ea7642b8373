import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { expect } from 'chai';
import type { Page } from 'puppeteer';
import sharp from 'sharp';
import { launchBrowser } from '../../ts/agent/browser/launch.js';
import { renderReport } from '../../ts/report/page.js';
import { reportData } from '../support/report-data.js';

// As text: tsx marks named functions with a helper that does not exist in the page.
const poorContrastScript = `(() => {
  const channels = (color) => (color.match(/[\\d.]+/g) ?? []).map(Number);
  const linear = (channel) => channel <= 0.04045 ? channel / 12.92 : ((channel + 0.055) / 1.055) ** 2.4;
  const luminance = ([r, g, b]) => 0.2126 * linear(r / 255) + 0.7152 * linear(g / 255) + 0.0722 * linear(b / 255);
  const background = (element) => {
    for (let at = element; at; at = at.parentElement) {
      const color = channels(getComputedStyle(at).backgroundColor);
      if (color.length === 3 || color[3] > 0) return color;
    }
    return [255, 255, 255];
  };
  const hasText = (element) =>
    [...element.childNodes].some((node) => node.nodeType === 3 && node.textContent.trim() !== '');
  return [...document.querySelectorAll('body *')]
    .filter((element) => hasText(element) && element.getClientRects().length > 0)
    .map((element) => {
      const style = getComputedStyle(element);
      const ink = luminance(channels(element.closest('svg') ? style.fill : style.color));
      const paper = luminance(background(element));
      const contrast = (Math.max(ink, paper) + 0.05) / (Math.min(ink, paper) + 0.05);
      return { text: element.textContent.trim().slice(0, 40), contrast };
    })
    .filter(({ contrast }) => !(contrast >= 4.5));
})()`;

describe('report page in a browser', () => {
  let folder: string;
  let running: Awaited<ReturnType<typeof launchBrowser>>;
  let page: Page;
  const requests: string[] = [];
  const complaints: string[] = [];

  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'boq-report-'));
    const data = reportData();
    const picture = await sharp({ create: { width: 332, height: 214, channels: 3, background: '#ddeeff' } })
      .webp()
      .toBuffer();
    data.examples[0]!.steps[0]!.image = `data:image/webp;base64,${picture.toString('base64')}`;
    await writeFile(join(folder, 'report.html'), renderReport(data));
    running = await launchBrowser();
    page = await running.browser.newPage();
    // The browser is started without Puppeteer's events of the network.
    const network = await page.createCDPSession();
    network.on('Network.requestWillBeSent', ({ request }) => requests.push(request.url));
    await network.send('Network.enable');
    page.on('console', (message) => complaints.push(message.text()));
    page.on('pageerror', (error) => complaints.push(String(error)));
    await page.setViewport({ width: 1180, height: 900 });
    await page.goto(pathToFileURL(join(folder, 'report.html')).href);
  });
  after(async () => {
    await running?.close();
    await rm(folder, { recursive: true });
  });

  it('loads nothing but itself and its pictures, without a complaint', () => {
    expect(requests.filter((url) => !url.startsWith('data:'))).to.have.length(1);
    expect(complaints).to.deep.equal([]);
  });

  it('shows pictures at their size and the ring where the click was', async () => {
    const { natural, offset } = await page.evaluate(() => {
      const image = document.querySelector('.shot img') as HTMLImageElement;
      const box = image.getBoundingClientRect();
      const ring = document.querySelector('.point')!.getBoundingClientRect();
      return {
        natural: [image.naturalWidth, image.naturalHeight],
        offset: [
          (ring.x + ring.width / 2 - box.x) / box.width,
          (ring.y + ring.height / 2 - box.y) / box.height,
        ],
      };
    });
    expect(natural).to.deep.equal([332, 214]);
    expect(offset[0]).to.be.closeTo(0.25, 0.02);
    expect(offset[1]).to.be.closeTo(0.5, 0.02);
  });

  it('never scrolls sideways as a whole, on wide and narrow screens', async () => {
    for (const width of [1180, 700, 390]) {
      await page.setViewport({ width, height: 900 });
      const overflow = await page.evaluate(
        () => document.documentElement.scrollWidth - document.documentElement.clientWidth,
      );
      expect(overflow, `${width} px`).to.equal(0);
    }
    await page.setViewport({ width: 1180, height: 900 });
  });

  for (const scheme of ['light', 'dark']) {
    it(`is readable in ${scheme}: every text reaches a contrast of 4.5`, async () => {
      await page.emulateMediaFeatures([{ name: 'prefers-color-scheme', value: scheme }]);
      await page.evaluate(() => {
        for (const details of document.querySelectorAll('details')) details.open = true;
      });
      const poor = await page.evaluate(poorContrastScript);
      expect(poor).to.deep.equal([]);
    });
  }
});
