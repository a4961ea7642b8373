import { EventEmitter } from 'node:events';
import { expect } from 'chai';
import type { Page } from 'puppeteer';
import { Tab } from '../../ts/agent/browser/tab.js';
import type { Targets } from '../../ts/agent/browser/targets.js';

/** A 2 x 3 png, as far as its header. */
const picture = Buffer.concat([
  Buffer.from('89504e470d0a1a0a0000000d49484452', 'hex'),
  Buffer.from([0, 0, 0, 2, 0, 0, 0, 3]),
]);

/** The protocol of a tab whose document is being replaced for the first few pictures. */
class SwappingSession extends EventEmitter {
  pictures = 0;
  readonly #failures: number;

  constructor(failures: number) {
    super();
    this.#failures = failures;
  }

  async send(method: string): Promise<object> {
    if (method === 'Page.getFrameTree') return { frameTree: { frame: { id: 'main' } } };
    if (method !== 'Page.captureScreenshot') return {};
    if (++this.pictures <= this.#failures)
      throw new Error(`Protocol error (${method}): Not attached to an active page`);
    return { data: picture.toString('base64') };
  }
}

async function attach(session: SwappingSession): Promise<Tab> {
  const page = Object.assign(new EventEmitter(), {
    isClosed: () => false,
    createCDPSession: async () => session,
  });
  const limits = { loadMs: 1000, settleMs: 1000, callMs: 1000 };
  return Tab.attach(page as unknown as Page, limits, {} as Targets, () => undefined);
}

describe('a tab', () => {
  it('takes its picture once a navigation has replaced the document', async () => {
    const session = new SwappingSession(3);
    const tab = await attach(session);
    const shot = await tab.screenshot({ format: 'png', quality: 0 });
    expect(shot).to.include({ format: 'png', width: 2, height: 3 });
    expect(session.pictures).to.equal(4);
  });

  it('gives up where the document never comes', async () => {
    const tab = await attach(new SwappingSession(Number.POSITIVE_INFINITY));
    const error = await tab.screenshot({ format: 'png', quality: 0 }).then(
      () => null,
      (reason: Error) => reason,
    );
    expect(error?.message).to.include('Not attached');
  });
});
