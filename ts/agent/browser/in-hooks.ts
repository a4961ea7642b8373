/**
 * Bookkeeping that must begin before the page's own scripts: who listens for clicks, closed shadow roots, pending
 * requests and short timers. The wrapped functions behave as before.
 */
import type { PageApi } from './page-api.js';

export function installHooks(api: PageApi): void {
  const pointerEvents = new Set(['click', 'mousedown', 'mouseup', 'pointerdown', 'pointerup', 'touchstart']);
  api.listeners = new WeakSet();
  api.clickListeners = new WeakSet();
  api.shadowRoots = new WeakMap();

  const addEventListener = EventTarget.prototype.addEventListener;
  EventTarget.prototype.addEventListener = function (
    this: EventTarget,
    ...parameters: Parameters<typeof addEventListener>
  ): void {
    if (this && pointerEvents.has(parameters[0])) api.listeners.add(this);
    if (this && parameters[0] === 'click') api.clickListeners.add(this);
    addEventListener.apply(this, parameters);
  };

  const attachShadow = Element.prototype.attachShadow;
  Element.prototype.attachShadow = function (this: Element, init: ShadowRootInit): ShadowRoot {
    const root = attachShadow.call(this, init);
    api.shadowRoots.set(this, root);
    return root;
  };

  // A request that never ends must not hold up the agent: after a while it does not count any more.
  const longestRequestMs = 4000;
  const requests = new Set<number>();
  const request = (): (() => void) => {
    const id = performance.now() + Math.random();
    requests.add(id);
    return () => requests.delete(id);
  };
  const originalFetch = window.fetch;
  if (originalFetch) {
    window.fetch = function (this: Window, ...parameters: Parameters<typeof fetch>): Promise<Response> {
      const finished = request();
      const answer = originalFetch.apply(this ?? window, parameters);
      answer.then(finished, finished);
      return answer;
    };
  }
  const send = XMLHttpRequest.prototype.send;
  XMLHttpRequest.prototype.send = function (
    this: XMLHttpRequest,
    ...parameters: Parameters<typeof send>
  ): void {
    addEventListener.call(this, 'loadend', request(), { once: true });
    send.apply(this, parameters);
  };
  api.pendingRequests = () => {
    for (const started of requests)
      if (started + longestRequestMs < performance.now()) requests.delete(started);
    return requests.size;
  };

  // Delayed reactions (suggestion lists, debounced handlers) are part of what an action did. Timers that start each
  // other over and over are a clock, so only a few generations count.
  const longestMs = 700;
  const deepest = 3;
  const due = new Map<number, number>();
  const ticking = new Map<number, number>();
  let generation = 0;
  // Either function clears either kind of timer.
  const forget = (id: number): void => {
    due.delete(id);
    ticking.delete(id);
  };
  const originalSetTimeout = window.setTimeout;
  const originalClearTimeout = window.clearTimeout;
  const wrapped = function (
    this: unknown,
    handler: TimerHandler,
    delay?: number,
    ...rest: unknown[]
  ): number {
    const wait = Number(delay) || 0;
    const born = generation + 1;
    if (typeof handler !== 'function' || wait > longestMs || born > deepest) {
      return Reflect.apply(originalSetTimeout, window, [handler, delay, ...rest]);
    }
    const run = function (this: unknown): void {
      due.delete(id);
      const before = generation;
      generation = born;
      try {
        handler.apply(this, rest);
      } finally {
        generation = before;
      }
    };
    const id = Number(Reflect.apply(originalSetTimeout, window, [run, delay]));
    due.set(id, performance.now() + wait);
    return id;
  };
  window.setTimeout = wrapped as unknown as typeof window.setTimeout;
  window.clearTimeout = ((id?: number) => {
    if (id !== undefined) forget(id);
    originalClearTimeout.call(window, id);
  }) as typeof window.clearTimeout;
  // Older libraries animate with a short interval that they clear at the end. One that goes on is a clock.
  const longestAnimationMs = 1500;
  const originalSetInterval = window.setInterval;
  const originalClearInterval = window.clearInterval;
  window.setInterval = ((handler: TimerHandler, delay?: number, ...rest: unknown[]): number => {
    const id = Number(Reflect.apply(originalSetInterval, window, [handler, delay, ...rest]));
    if ((Number(delay) || 0) < 100) ticking.set(id, performance.now() + longestAnimationMs);
    return id;
  }) as unknown as typeof window.setInterval;
  window.clearInterval = ((id?: number) => {
    if (id !== undefined) forget(id);
    originalClearInterval.call(window, id);
  }) as typeof window.clearInterval;

  api.later = (callback, ms) => void originalSetTimeout.call(window, callback, ms);
  api.pendingTimers = () => {
    const now = performance.now();
    for (const [id, end] of ticking) if (end < now) ticking.delete(id);
    // A busy machine fires late; a timer that does not come at all must not hold up the agent.
    for (const [id, end] of due) if (end + longestMs < now) due.delete(id);
    return ticking.size + due.size;
  };

  // A blinking caret would make two pictures of one state differ.
  const sheet = new CSSStyleSheet();
  sheet.replaceSync(':root { caret-color: transparent; }');
  document.adoptedStyleSheets = [...document.adoptedStyleSheets, sheet];
}
