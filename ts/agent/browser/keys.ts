/** Keyboard events of the DevTools protocol for characters and named keys. */
import type { Protocol } from 'puppeteer';

const named = {
  Enter: { code: 'Enter', keyCode: 13, text: '\r' },
  Tab: { code: 'Tab', keyCode: 9, text: '' },
  Escape: { code: 'Escape', keyCode: 27, text: '' },
  Backspace: { code: 'Backspace', keyCode: 8, text: '' },
  Delete: { code: 'Delete', keyCode: 46, text: '' },
  ArrowUp: { code: 'ArrowUp', keyCode: 38, text: '' },
  ArrowDown: { code: 'ArrowDown', keyCode: 40, text: '' },
  ArrowLeft: { code: 'ArrowLeft', keyCode: 37, text: '' },
  ArrowRight: { code: 'ArrowRight', keyCode: 39, text: '' },
  Home: { code: 'Home', keyCode: 36, text: '' },
  End: { code: 'End', keyCode: 35, text: '' },
  PageUp: { code: 'PageUp', keyCode: 33, text: '' },
  PageDown: { code: 'PageDown', keyCode: 34, text: '' },
  Space: { code: 'Space', keyCode: 32, text: ' ' },
} as const;

export type KeyName = keyof typeof named;
/** One event of a key, as the protocol takes it. */
export type KeyEvent = Protocol.Input.DispatchKeyEventRequest;

export const keyNames = Object.keys(named) as KeyName[];

/** Down and up of one key: a name from `keyNames` or a single character. */
export function keyEvents(key: string): KeyEvent[] {
  const special = key in named ? named[key as KeyName] : key === '\n' ? named.Enter : null;
  if (special) {
    const name = key === '\n' ? 'Enter' : key === 'Space' ? ' ' : key;
    const common = { key: name, code: special.code, windowsVirtualKeyCode: special.keyCode };
    return [
      special.text ? { type: 'keyDown', ...common, text: special.text } : { type: 'rawKeyDown', ...common },
      { type: 'keyUp', ...common },
    ];
  }
  const upper = key.toUpperCase();
  const code = /^[A-Z]$/.test(upper) ? `Key${upper}` : /^\d$/.test(key) ? `Digit${key}` : '';
  const virtual = code ? upper.charCodeAt(0) : key === ' ' ? 32 : 0;
  const common = { key, ...(code ? { code } : {}), ...(virtual ? { windowsVirtualKeyCode: virtual } : {}) };
  return [
    { type: 'keyDown', ...common, text: key },
    { type: 'keyUp', ...common },
  ];
}
