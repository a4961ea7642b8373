/** The hands of the agent in one tab: mouse, keyboard, and files given to file fields. Points are viewport CSS pixels. */
import type { Point } from '../../store/types.js';
import type { Channel } from './channel.js';
import { type KeyEvent, type KeyName, keyEvents } from './keys.js';
import { pageCall } from './page-script.js';

/** Texts up to this long are typed key by key; of longer ones only the last character is. */
const longestTyped = 120;

/** Mouse positions between the ends of a drag: libraries tell a drag from a click by its way. */
const dragSteps = 8;

const left = { button: 'left', clickCount: 1 } as const;

/** What a person would do with mouse and keyboard. Each call throws what {@link Channel.call} throws. */
export class Input {
  readonly #channel: Channel;
  readonly #aim: (point: Point) => Promise<Point | null>;

  /** @param aim where a click must go to reach what is seen at a point; null for that very point */
  constructor(channel: Channel, aim: (point: Point) => Promise<Point | null>) {
    this.#channel = channel;
    this.#aim = aim;
  }

  async move(point: Point): Promise<void> {
    await this.#mouse('mouseMoved', point);
  }

  async click(point: Point): Promise<void> {
    await this.move(point);
    const aim = (await this.#aim(point)) ?? point;
    // The protocol keeps the order; not waiting in between saves a round trip.
    await Promise.all([
      this.#mouse('mousePressed', aim, { ...left, buttons: 1 }),
      this.#mouse('mouseReleased', aim, left),
    ]);
  }

  async drag(from: Point, to: Point): Promise<void> {
    await this.move(from);
    await this.#mouse('mousePressed', from, { ...left, buttons: 1 });
    for (let step = 1; step <= dragSteps; step++) {
      const point = {
        x: from.x + ((to.x - from.x) * step) / dragSteps,
        y: from.y + ((to.y - from.y) * step) / dragSteps,
      };
      await this.#mouse('mouseMoved', point, { button: 'left', buttons: 1 });
    }
    await this.#mouse('mouseReleased', to, left);
  }

  async press(key: KeyName): Promise<void> {
    await this.#keys(keyEvents(key));
  }

  /** Types into the focused field. Pages that listen to keys see them, except within very long texts. */
  async type(text: string): Promise<void> {
    const byKey = text.length <= longestTyped ? text : text.slice(-1);
    const head = text.slice(0, text.length - byKey.length);
    if (head)
      await this.#channel.call((session) => session.send('Input.insertText', { text: head }), 'the text');
    await this.#keys(Array.from(byKey).flatMap((character) => keyEvents(character)));
  }

  /**
   * Hands a file to the file field at the point.
   * @param path of a file that exists
   * @returns false where no file field is there
   */
  async giveFile(point: Point, path: string): Promise<boolean> {
    const expression = pageCall('fileFieldAt', point.x, point.y);
    const found = await this.#channel.call(
      (session) => session.send('Runtime.evaluate', { expression }),
      'the file field',
    );
    const { objectId } = found.result;
    if (!objectId) return false;
    await this.#channel.call(
      (session) => session.send('DOM.setFileInputFiles', { files: [path], objectId }),
      'the file field to take the file',
    );
    return true;
  }

  async #mouse(
    type: 'mouseMoved' | 'mousePressed' | 'mouseReleased',
    { x, y }: Point,
    more: { button?: 'left'; buttons?: number; clickCount?: number } = {},
  ): Promise<void> {
    await this.#channel.call(
      (session) => session.send('Input.dispatchMouseEvent', { type, x, y, ...more }),
      'the mouse',
    );
  }

  /** Sends them at once: the protocol keeps their order. */
  async #keys(events: readonly KeyEvent[]): Promise<void> {
    await Promise.all(
      events.map((event) =>
        this.#channel.call((session) => session.send('Input.dispatchKeyEvent', event), 'the keyboard'),
      ),
    );
  }
}
