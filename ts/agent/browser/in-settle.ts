/**
 * Waits inside the page until an action's consequences are there: document loaded, no request open, no short timer
 * due, no running finite animation, and two frames in a row in which the DOM did not change; at most `capMs`.
 */
import type { PageApi } from './page-api.js';

export function installSettle(api: PageApi): void {
  // Background pages may stop their animation frames; a timer of our own goes on.
  const nextFrame = (): Promise<void> =>
    new Promise((resolve) => {
      requestAnimationFrame(() => resolve());
      api.later(resolve, 60);
    });

  const animating = (): boolean =>
    document.getAnimations().some((animation) => {
      if (animation.playState !== 'running') return false;
      const end = animation.effect?.getComputedTiming().endTime;
      return typeof end === 'number' && Number.isFinite(end) && end < 2000;
    });

  // A document that did not come to its end in time is taken as it is from then on.
  let endless = false;

  api.settle = async (capMs) => {
    const started = performance.now();
    const late = (): boolean => performance.now() - started > capMs;
    let changes = 0;
    const observer = new MutationObserver(() => changes++);
    observer.observe(document, { subtree: true, childList: true, attributes: true, characterData: true });
    try {
      let quiet = 0;
      while (quiet < 2) {
        if (late()) {
          endless = document.readyState !== 'complete';
          return 'cap';
        }
        const before = changes;
        await nextFrame();
        // A page that moves on and on by itself is not waited for as long as one that still loads.
        const moving = (changes !== before || animating()) && performance.now() - started < 1500;
        const busy =
          moving ||
          (!endless && document.readyState !== 'complete') ||
          api.pendingRequests() > 0 ||
          api.pendingTimers() > 0;
        quiet = busy ? 0 : quiet + 1;
      }
      return 'quiet';
    } finally {
      observer.disconnect();
    }
  };

  api.pause = (capMs) =>
    new Promise((resolve) => {
      const finish = (): void => {
        observer.disconnect();
        resolve();
      };
      const observer = new MutationObserver(finish);
      observer.observe(document, { subtree: true, childList: true, attributes: true, characterData: true });
      api.later(finish, capMs);
    });
}
