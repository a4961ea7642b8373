/** Whether the main frame of a tab is loading a document, and waiting for the end of that. */
import type { Channel } from './channel.js';
import { within } from './deadline.js';

/** Follows the navigations of one tab's main frame. */
export class Loading {
  readonly #channel: Channel;
  /** A navigation was asked for or began and has not ended. */
  #isUnderWay = false;
  #onChange: (() => void)[] = [];

  /** @param mainFrame its id; frames inside the page may load as they like */
  constructor(channel: Channel, mainFrame: string) {
    this.#channel = channel;
    const { session } = channel;
    session.on('Page.frameRequestedNavigation', ({ frameId, disposition }) => {
      if (frameId === mainFrame && disposition === 'currentTab') this.#change(true);
    });
    session.on('Page.frameStartedLoading', ({ frameId }) => {
      if (frameId === mainFrame) this.#change(true);
    });
    session.on('Page.frameStoppedLoading', ({ frameId }) => {
      if (frameId === mainFrame) this.#change(false);
    });
    session.on('Page.frameClearedScheduledNavigation', ({ frameId }) => {
      if (frameId === mainFrame) this.#change(false);
    });
    session.on('Page.downloadWillBegin', () => this.#change(false));
    channel.onCrash(() => this.#change(false));
  }

  get isUnderWay(): boolean {
    return this.#isUnderWay;
  }

  /** Says that a navigation is about to begin, before the browser does. */
  expect(): void {
    this.#isUnderWay = true;
  }

  /** Resolves when nothing is being loaded any more, the tab is gone, or `ms` milliseconds are over. */
  async ended(ms: number): Promise<void> {
    const deadline = Date.now() + ms;
    while (this.#isUnderWay && this.#channel.isAlive) {
      const left = deadline - Date.now();
      if (left <= 0) {
        // Taken as it is from now on; the next navigation is waited for again.
        this.#isUnderWay = false;
        return;
      }
      await within(new Promise<void>((resolve) => this.#onChange.push(resolve)), left, 'the page').catch(
        () => undefined,
      );
    }
  }

  #change(isUnderWay: boolean): void {
    this.#isUnderWay = isUnderWay;
    for (const wake of this.#onChange.splice(0)) wake();
  }
}
