/** The text that is put into every document before its own scripts run. */
import { installControls } from './in-controls.js';
import { installHooks } from './in-hooks.js';
import { installNames } from './in-names.js';
import { installObserve } from './in-observe.js';
import { installSettle } from './in-settle.js';

const parts = [installHooks, installNames, installObserve, installControls, installSettle];

// Some compilers wrap functions in a helper of that name to keep their names; the page has none.
export const pageScript = `(() => {
  const __name = (value) => value;
  const key = Symbol.for('boq');
  if (globalThis[key]) return;
  const api = {};
  Object.defineProperty(globalThis, key, { value: api });
  ${parts.map((part) => `(${part.toString()})(api);`).join('\n')}
})()`;

/** An expression that calls one function of the page script with JSON arguments. */
export function pageCall(method: string, ...parameters: unknown[]): string {
  return `globalThis[Symbol.for('boq')].${method}(${parameters.map((value) => JSON.stringify(value)).join(',')})`;
}
