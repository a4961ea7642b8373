import { execFileSync, spawn } from 'node:child_process';
import { existsSync, readdirSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { fileURLToPath } from 'node:url';
import { expect } from 'chai';
import sharp from 'sharp';
import { launchBrowser } from '../../ts/agent/browser/launch.js';
import { BrowserPool } from '../../ts/agent/browser/pool.js';
import { isBoqError } from '../../ts/core/errors.js';
import { fixtureUrl, withPages } from '../support/browser.js';

describe('browser session', () => {
  const onPage = withPages();

  it('sees controls, shadow roots and frames, and nothing that is covered or hidden', () =>
    onPage('pages/controls.html', async (hands) => {
      const { elements, title } = await hands.observe();
      const words = elements.map(({ description }) => description);
      expect(title).to.equal('Controls');
      expect(words).to.include.members([
        'heading "Order"',
        'textbox "Name"',
        'textbox "Comment"',
        'checkbox "Gift"',
        'combobox "Country"',
        'listbox "Extras"',
        'option "Card"',
        'datefield "Day"',
        'colorfield "Colour"',
        'button "Send"',
        'button "In shadow"',
        'button "In frame"',
        'clickable "trash" in "Ann / Order"',
        'clickable "trash" in "Bob / Order"',
      ]);
      expect(words.filter((word) => /Under cover|Not there|Deep/.test(word))).to.deep.equal([]);
      expect(new Set(words).size).to.equal(words.length);
      const name = elements.find(({ description }) => description === 'textbox "Name"');
      expect(name).to.deep.include({ value: 'old text', inputType: 'text', tag: 'input', disabled: false });
      expect(elements.find(({ role }) => role === 'combobox')?.options).to.deep.equal(['France', 'Norway']);
    }));

  it('takes screenshots of the viewport', () =>
    onPage('pages/controls.html', async (hands) => {
      const { screenshot, viewport } = await hands.observe();
      const picture = await sharp(screenshot.bytes).metadata();
      expect(picture).to.include({ format: 'png', width: 800, height: 700 });
      expect(screenshot).to.include({ width: 800, height: 700 });
      expect(viewport).to.deep.equal({ width: 800, height: 700, deviceScaleFactor: 1 });
    }));

  it('fills a form as a person would', () =>
    onPage('pages/controls.html', async (hands) => {
      expect(await hands.write('textbox "Name"', "Zoë O'Neil & co")).to.deep.equal({
        ok: true,
        message: 'wrote "Zoë O\'Neil & co" into textbox "Name"',
      });
      await hands.write('textbox "Comment"', 'two\nlines');
      await hands.click('checkbox "Gift"');
      expect((await hands.write('combobox "Country"', 'Norway')).message).to.equal(
        'chose option "Norway" in combobox "Country"',
      );
      await hands.click('option "Card"');
      await hands.write('listbox "Extras"', 'Bow');
      await hands.write('datefield "Day"', 'March 21, 2025');
      await hands.write('colorfield "Colour"', 'red');
      await hands.click('button "Send"');
      const sent = new URLSearchParams((await hands.title()).replace('sent ', ''));
      expect(Object.fromEntries(sent)).to.deep.equal({
        name: "Zoë O'Neil & co",
        comment: 'two\nlines',
        gift: 'on',
        country: 'Norway',
        extras: 'Card',
        day: '2025-03-21',
        colour: '#ff0000',
      });
      expect(sent.getAll('extras')).to.deep.equal(['Bow', 'Card']);
    }));

  it('says what a field or list would take', () =>
    onPage('pages/controls.html', async (hands) => {
      expect((await hands.write('datefield "Day"', 'soon')).message).to.match(/takes a date, "soon" is none/);
      expect((await hands.click('combobox "Country"')).message).to.match(
        /name one of its options "France", "Norway"/,
      );
      expect((await hands.write('button "Send"', 'x')).message).to.equal('button "Send" is no text field');
      expect((await hands.click('button "Nowhere"')).message).to.match(/no element on the page matches/);
      expect((await hands.click('option "Norway" of Country')).ok).to.equal(true);
      expect(await hands.evaluate('document.querySelector("select").value')).to.equal('Norway');
    }));

  it('presses Enter to submit and clears a field', () =>
    onPage('pages/controls.html', async (hands) => {
      await hands.write('textbox "Name"', '');
      expect(await hands.evaluate('document.querySelector("input").value')).to.equal('');
      await hands.write('textbox "Name"', 'Kim', true);
      expect(await hands.title()).to.match(/^sent name=Kim&/);
    }));

  for (const [element, title] of [
    ['button "In shadow"', 'shadowed'],
    ['button "In frame"', 'framed'],
    ['clickable "trash" in "Bob / Order"', 'trashed Bob'],
  ] as const) {
    it(`clicks ${element}`, () =>
      onPage('pages/controls.html', async (hands) => {
        await hands.click(element);
        expect(await hands.title()).to.equal(title);
      }));
  }

  it('scrolls an area inside the page', () =>
    onPage('pages/controls.html', async (hands) => {
      for (let turn = 0; turn < 8; turn++) await hands.act({ type: 'scroll', direction: 'down' });
      await hands.click('button "Deep"');
      expect(await hands.title()).to.equal('deep');
      expect((await hands.act({ type: 'scroll', direction: 'down' })).ok).to.equal(false);
    }));

  it('answers dialogs and reports them', () =>
    onPage('pages/windows.html', async (hands) => {
      await hands.click('button "Ask"');
      expect(await hands.title()).to.equal('confirmed');
      await hands.click('button "Tell"');
      expect(await hands.title()).to.equal('told');
      expect((await hands.observe()).events).to.deep.equal([
        'the page showed an alert "first", answered OK',
        'the page showed an alert "second", answered OK',
      ]);
    }));

  it('follows a new tab and comes back', () =>
    onPage('pages/windows.html', async (hands) => {
      await hands.click('link "Open tab"');
      const inside = await hands.observe();
      expect(inside.url).to.equal(fixtureUrl('pages/controls.html'));
      expect(inside.events).to.deep.equal(['a new tab was opened']);
      expect(inside.tabs.map(({ active }) => active)).to.deep.equal([false, true]);
      await hands.click('button "In shadow"');
      expect(await hands.title()).to.equal('shadowed');
      await hands.act({ type: 'go_back' });
      const back = await hands.observe();
      expect(back.url).to.equal(fixtureUrl('pages/windows.html'));
      expect(back.events).to.deep.equal(['the tab was closed']);
      await hands.click('button "Ask"');
      expect(await hands.title()).to.equal('confirmed');
    }));

  it('goes back, refreshes and restarts', () =>
    onPage('pages/windows.html', async (hands) => {
      expect((await hands.act({ type: 'go_back' })).message).to.equal('there is no page to go back to');
      await hands.click('link "Follow"');
      expect(await hands.title()).to.equal('Controls');
      await hands.act({ type: 'go_back' });
      expect(await hands.title()).to.equal('Windows');
      await hands.click('button "Ask"');
      await hands.act({ type: 'refresh' });
      expect(await hands.title()).to.equal('Windows');
      await hands.click('link "Follow"');
      await hands.act({ type: 'restart' });
      expect(await hands.title()).to.equal('Windows');
    }));

  it('waits for what comes late, and not for what never ends', () =>
    onPage('pages/windows.html', async (hands) => {
      await hands.click('button "Later"');
      expect(await hands.title()).to.equal('late');
      await hands.click('button "Tick"');
      await hands.click('button "Ask"');
      expect(await hands.title()).to.equal('confirmed');
    }));

  it('names the address that does not load', async () => {
    let fault: unknown;
    await onPage('file:///no/such/page.html', async () => undefined).catch((error: unknown) => {
      fault = error;
    });
    expect(isBoqError(fault, 'BOQ_BROWSER')).to.equal(true);
    expect(String(fault)).to.match(/no\/such\/page.html to load, got net::ERR_FILE_NOT_FOUND/);
  });
});

describe('browser process', () => {
  const profiles = () => readdirSync(tmpdir()).filter((name) => name.startsWith('boq-profile-'));

  it('leaves nothing behind after close', async () => {
    const before = profiles();
    const { browser, close } = await launchBrowser();
    const process = browser.process();
    expect(profiles().length).to.equal(before.length + 1);
    await close();
    await close();
    expect(process?.exitCode !== null || process?.signalCode !== null).to.equal(true);
    expect(profiles()).to.deep.equal(before);
  });

  it('says where it looked for the browser', async () => {
    let fault: unknown;
    await launchBrowser({ executablePath: '/no/chrome' }).catch((error: unknown) => {
      fault = error;
    });
    expect(isBoqError(fault, 'BOQ_BROWSER_NOT_FOUND')).to.equal(true);
    expect(String(fault)).to.contain('/no/chrome');
  });

  for (const signal of ['SIGINT', 'SIGTERM', 'SIGKILL'] as const) {
    it(`ends with its parent on ${signal}`, async () => {
      const script = fileURLToPath(new URL('../support/open-browser.ts', import.meta.url));
      const child = spawn(process.execPath, ['--import', 'tsx', script], {
        stdio: ['ignore', 'pipe', 'inherit'],
      });
      const line = await new Promise<string>((resolve) =>
        child.stdout.once('data', (data) => resolve(String(data))),
      );
      const { pid, profile } = JSON.parse(line) as { pid: number; profile: string };
      expect(existsSync(profile)).to.equal(true);
      child.kill(signal);
      await new Promise((resolve) => child.once('exit', resolve));
      // The browser notices the closed pipe by itself; ask the system until it is gone.
      for (let asked = 0; asked < 400 && isAlive(pid); asked++) execFileSync('sleep', ['0.02']);
      expect(isAlive(pid)).to.equal(false);
      const next = await launchBrowser();
      await next.close();
      expect(existsSync(profile)).to.equal(false);
    });
  }

  it('is replaced when it dies', async () => {
    await using pool = new BrowserPool({ size: 1 });
    const url = fixtureUrl('pages/windows.html');
    let fault: unknown;
    await pool
      .use(async (session) => {
        await session.begin(url);
        session.tab.page.browser().process()?.kill('SIGKILL');
        await session.observe();
      })
      .catch((error: unknown) => {
        fault = error;
      });
    expect(fault).to.be.instanceOf(Error);
    const title = await pool.use(async (session) => {
      await session.begin(url);
      return (await session.observe()).title;
    });
    expect(title).to.equal('Windows');
  });
});

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}
