/**
 * The trap pages: what is done on each, and the state that an action after the trap must bring about. 'Finish'
 * writes the page's state into the title.
 */
import type { Action } from '../../ts/store/types.js';

/** Whatever plays a trap: the agent's hands, or a plain loop beside them. */
export interface Hands {
  act(action: Action): Promise<unknown>;
  click(element: string): Promise<unknown>;
  write(element: string, text: string, submit?: boolean): Promise<unknown>;
  observe(): Promise<{ elements: readonly { description: string }[] }>;
}

export interface Trap {
  /** A file in test/fixtures/traps, or a path on the trap server. */
  page: string;
  title: string;
  /** What the title must be at the end. */
  after: string;
  play(hands: Hands): Promise<unknown>;
  /** Sentences that the policy must have been told. */
  events?: RegExp;
}

const look = (hands: Hands) => hands.observe();
const finish = (hands: Hands) => hands.click('button "Finish"');
const steps =
  (...actions: ((hands: Hands) => Promise<unknown>)[]) =>
  async (hands: Hands): Promise<void> => {
    for (const action of actions) await action(hands);
  };
const click = (element: string) => (hands: Hands) => hands.click(element);
const write =
  (element: string, text: string, submit = false) =>
  (hands: Hands) =>
    hands.write(element, text, submit);
const back = (hands: Hands) => hands.act({ type: 'go_back' });
const down = (hands: Hands) => hands.act({ type: 'scroll', direction: 'down' });
const until =
  (shown: RegExp, action: (hands: Hands) => Promise<unknown>, most = 20) =>
  async (hands: Hands): Promise<void> => {
    for (let turn = 0; turn < most; turn++) {
      const { elements } = await hands.observe();
      if (elements.some(({ description }) => shown.test(description))) return;
      await action(hands);
    }
  };
const finishButton = /button "Finish"/;

const file = (
  page: string,
  title: string,
  after: string,
  play: (hands: Hands) => Promise<unknown>,
  events?: RegExp,
): Trap => ({
  page: `traps/${page}.html`,
  title,
  after: `after: ${after}`,
  play,
  ...(events ? { events } : {}),
});

export const fileTraps: readonly Trap[] = [
  file(
    'alert-on-click',
    'an alert on a click',
    'true',
    steps(click('button "Save"'), finish),
    /alert "Saved"/,
  ),
  file('alert-on-load', 'alerts while loading', 'done', finish),
  file('alert-on-timer', 'alerts that keep coming', 'done', finish),
  file(
    'confirm',
    'a question',
    'true',
    steps(click('button "Delete"'), finish),
    /confirm "Delete everything\?"/,
  ),
  file('prompt', 'a prompt', '3', steps(click('button "Ask"'), finish), /prompt "How many\?"/),
  file(
    'beforeunload',
    'a page that does not want to be left',
    'done',
    steps(write('textbox "Draft"', 'words'), click('link "Leave"'), finish),
    /whether to leave it/,
  ),
  file(
    'popup-window',
    'a window',
    'done',
    steps(click('button "Open window"'), finish),
    /new tab was opened/,
  ),
  file(
    'popup-alert',
    'a window that alerts at once',
    'done',
    steps(click('button "Open noisy window"'), finish),
  ),
  file(
    'popup-closes',
    'a window that closes itself',
    'told by the window',
    steps(
      click('button "Open short-lived window"'),
      until(finishButton, (hands) => hands.act({ type: 'wait' })),
      finish,
    ),
  ),
  file(
    'popup-writes',
    'a window written by script',
    'written',
    steps(click('button "Open written window"'), finish),
  ),
  file('target-blank', 'a link into a new tab', 'done', steps(click('link "Open tab"'), finish)),
  file(
    'two-tabs',
    'pictures of a tab behind another',
    'first tab',
    steps(
      click('link "Open tab"'),
      (hands) => hands.act({ type: 'switch_tab', tab: 1 }),
      look,
      look,
      look,
      look,
      look,
      look,
      finish,
    ),
  ),
  file('form-new-tab', 'a form into a new tab', 'done', steps(click('button "Send to new tab"'), finish)),
  file('select', 'a native list', 'blue', steps(write('combobox "Colour"', 'blue'), finish)),
  file('select', 'a native list, clicked', 'green', steps(click('option "green" of Colour'), finish)),
  file('select-groups', 'a list with groups', 'r', steps(write('combobox "City"', 'Rome'), finish)),
  file(
    'select-multiple',
    'a list of several choices',
    'milk+honey',
    steps(
      click('option "milk"'),
      click('option "sugar"'),
      click('option "honey"'),
      click('option "sugar"'),
      finish,
    ),
  ),
  file(
    'select-covered',
    'a native list under a drawn one',
    'Large',
    steps(write('combobox "Size"', 'Large'), finish),
  ),
  file('date', 'a date field', '2026-02-28', steps(write('datefield "Day"', '28.2.2026'), finish)),
  file('time', 'a time field', '17:45', steps(write('timefield "Hour"', '5:45 pm'), finish)),
  file(
    'datetime',
    'a date and time field',
    '2026-02-28T08:00',
    steps(write('datefield "When"', '2026-02-28 8:00'), finish),
  ),
  file('month', 'a month field', '2026-02', steps(write('datefield "Month"', 'February 2026'), finish)),
  file('colour', 'a colour field', '#008000', steps(write('colorfield "Paint"', 'green'), finish)),
  file('range', 'a range', '7', steps(write('slider "Volume"', '7'), finish)),
  file(
    'file',
    'a file field',
    'hello.txt',
    steps(click('filefield "Photo"'), write('filefield "Photo"', 'hello.txt'), finish),
  ),
  file(
    'framework-input',
    'a field that a framework rewrites',
    'TEA',
    steps(write('textbox "Name"', 'tea'), finish),
  ),
  file(
    'masked-input',
    'a field that watches keys',
    '1234-5678',
    steps(write('textbox "Card"', '12345678'), finish),
  ),
  file(
    'long-text',
    'a long text',
    '5000 the e',
    steps(write('textbox "Essay"', `${'x'.repeat(4994)} the e`), finish),
  ),
  file('rich-text', 'rich text', 'new words', steps(write('textbox "Body"', 'new words'), finish)),
  file(
    'readonly',
    'a field that cannot be written into',
    'same',
    steps(write('textbox "Fixed"', 'other'), finish),
  ),
  file(
    'suggestions',
    'suggestions after a pause',
    'Berlin',
    steps(write('textbox "Town"', 'Ber'), click('"Berlin"'), finish),
  ),
  file(
    'enter-only',
    'a field that wants Enter',
    'tea',
    steps(write('textbox "Search"', 'tea', true), finish),
  ),
  file('custom-checkbox', 'a drawn check box', 'true', steps(click('checkbox "I agree"'), finish)),
  file(
    'details',
    'a closed section',
    'inside',
    steps(click('button "More"'), click('button "Inside"'), finish),
  ),
  file('dialog-element', 'a modal dialog', 'accepted', steps(click('button "Accept"'), finish)),
  file('cookie-banner', 'a banner over everything', 'done', steps(click('button "Reject all"'), finish)),
  file(
    'sticky-header',
    'a header that covers what is scrolled to',
    'yes',
    steps(
      until(/Below the header/, down),
      click('button "Below the header"'),
      until(finishButton, down),
      finish,
    ),
  ),
  file('inner-scroll', 'an area that scrolls', 'true', steps(until(finishButton, down), finish)),
  file(
    'side-scroll',
    'an area that scrolls sideways',
    'true',
    steps(
      until(finishButton, (hands) => hands.act({ type: 'scroll', direction: 'right' })),
      finish,
    ),
  ),
  file(
    'infinite-scroll',
    'a list without end',
    'fifty',
    steps(until(/Fiftieth/, down), click('button "Fiftieth"')),
  ),
  file('moving-button', 'a button that slides in', 'hit', steps(click('button "Slide in"'), finish)),
  file('endless-animation', 'an animation without end', 'done', finish),
  file('endless-changes', 'changes without end', 'done', finish),
  file('endless-frames', 'drawing without end', 'done', finish),
  file(
    'spinner',
    'a result that comes later',
    '1',
    steps(click('button "Load"'), click('button "Result"'), finish),
  ),
  file('late-redirect', 'a page that goes on later', 'done', steps(click('button "Go on"'), finish)),
  file('meta-refresh', 'a page that sends on at once', 'done', finish),
  file('push-state', 'history without loading', 'First', steps(click('link "Second page"'), back, finish)),
  file(
    'replaced-document',
    'a document replaced by script',
    'replaced',
    steps(click('button "Replace"'), finish),
  ),
  file(
    'shadow',
    'nested shadow roots',
    'x1',
    steps(write('textbox "Code"', 'x1'), click('button "Apply"'), finish),
  ),
  file(
    'frames',
    'nested frames',
    'deep',
    steps(write('textbox "Word"', 'deep'), click('button "Keep"'), finish),
  ),
  file('heavy', 'a hundred thousand nodes', 'true', finish),
  file('scaled', 'a turned and scaled button', 'done', finish),
  file('click-through', 'a veil that lets clicks through', 'done', finish),
  file('delegated-div', 'entries without markup', 'Beta', steps(click('"Beta"'), finish)),
  file('mouse-only', 'a box that listens to the mouse button', 'true', steps(click('"Press me"'), finish)),
  file(
    'wrapped-link',
    'a link over two lines',
    '1',
    steps(click('link "a link that breaks over lines"'), finish),
  ),
  file(
    'hover-menu',
    'a menu that opens under the mouse',
    'shoes',
    steps((hands) => hands.act({ type: 'hover', element: '"Products"' }), click('link "Shoes"'), finish),
  ),
  file(
    'drag-slider',
    'a handle to drag',
    'true',
    steps((hands) => hands.act({ type: 'drag', element: 'slider "Price"', right: 150, down: 0 }), finish),
  ),
  file(
    'keyboard-only',
    'a box that listens to keys',
    '2',
    steps(
      click('"Board"'),
      (hands) => hands.act({ type: 'press', key: 'ArrowRight' }),
      (hands) => hands.act({ type: 'press', key: 'ArrowRight' }),
      finish,
    ),
  ),
  file('permissions', 'requests for permissions', 'refused', steps(click('button "Where am I"'), finish)),
  file('print', 'a print window', 'yes', steps(click('button "Print"'), finish)),
  file('fullscreen', 'full screen', 'done', steps(click('button "Full screen"'), finish)),
  file('busy-script', 'a script that blocks the page', 'computed', steps(click('button "Compute"'), finish)),
  file('hidden-twin', 'hidden twins of a button', 'real', steps(click('button "Buy"'), finish)),
  file(
    'disabled-until',
    'a button that is disabled first',
    '1',
    steps(click('checkbox "Accept"'), click('button "Go"'), finish),
  ),
  file('error-page', 'a broken link', 'done', steps(click('link "Broken link"'), back, finish)),
  file(
    'focus-trap',
    'a field that gives the focus away',
    'AB',
    steps(write('textbox "First"', 'A'), write('textbox "Second"', 'B'), finish),
  ),
];

const served = (
  page: string,
  title: string,
  after: string,
  play: (hands: Hands) => Promise<unknown>,
  events?: RegExp,
): Trap => ({ page, title, after: `after: ${after}`, play, ...(events ? { events } : {}) });

export const serverTraps: readonly Trap[] = [
  served('/never-loading', 'a picture that never comes', 'done', finish),
  served('/never-ending', 'a document that never ends', 'done', finish),
  served('/hanging-fetch', 'a request without an answer', 'asked', steps(click('button "Ask"'), finish)),
  served('/slow-fetch', 'a slow answer', 'answered', steps(click('button "Ask"'), finish)),
  served('/to-slow-page', 'a slow page', 'done', steps(click('link "Slow page"'), finish)),
  served('/to-empty', 'a link without content', 'done', steps(click('link "No content"'), finish)),
  served('/to-download', 'a download', 'done', steps(click('link "Report"'), finish), /report\.csv/),
  served(
    '/blob-download',
    'a download made by script',
    'done',
    steps(click('button "Export"'), finish),
    /notes\.txt/,
  ),
  served(
    '/landing',
    'a crash of the page',
    'done',
    steps((hands) => hands.act({ type: 'goto', url: 'chrome://crash' }), look, finish),
    /crashed/,
  ),
  served(
    '/landing',
    'a page that crashes again and again',
    'done',
    steps(
      (hands) => hands.act({ type: 'goto', url: 'chrome://crash' }),
      look,
      (hands) => hands.act({ type: 'goto', url: 'chrome://crash' }),
      look,
      finish,
    ),
    /crashed/,
  ),
  served('/to-pdf', 'a PDF', 'done', steps(click('link "Paper"'), back, finish)),
  served('/to-password', 'a page behind a password', 'done', steps(click('link "Members"'), back, finish)),
  served('/to-loop', 'redirects in a circle', 'done', steps(click('link "Round and round"'), back, finish)),
  served('/to-reset', 'a connection cut off', 'done', steps(click('link "Cut off"'), back, finish)),
  served(
    '/foreign-frame',
    'a frame of another site',
    'far',
    steps(write('textbox "Word"', 'far'), click('button "Keep"'), finish),
  ),
];
