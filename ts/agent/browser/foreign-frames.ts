/**
 * Frames of other sites inside a page. The browser keeps each in a process of its own, so that the page script of the
 * main frame cannot look into them: they are asked one by one, in their own coordinates.
 */
import type { CDPSession } from 'puppeteer';
import { BoqError } from '../../core/errors.js';
import type { Point } from '../../store/types.js';
import type { Channel } from './channel.js';
import { within } from './deadline.js';
import { pageCall } from './page-script.js';

/** One frame, where it lies in the page. */
export class ForeignFrame {
  /** CSS pixels of the viewport. */
  readonly box: { x: number; y: number; width: number; height: number };
  readonly #session: CDPSession;
  readonly #callMs: number;

  constructor(box: ForeignFrame['box'], session: CDPSession, callMs: number) {
    this.box = box;
    this.#session = session;
    this.#callMs = callMs;
  }

  /** A point of the viewport in the frame's own coordinates; null where the frame does not show it. */
  inside(point: Point): Point | null {
    const [x, y] = [point.x - this.box.x, point.y - this.box.y];
    return x >= 0 && y >= 0 && x < this.box.width && y < this.box.height ? { x, y } : null;
  }

  /**
   * Calls a function of the page script in the frame.
   * @throws BoqError BOQ_TIMEOUT; BOQ_BROWSER where the function throws
   */
  async ask<T>(method: string, ...parameters: unknown[]): Promise<T> {
    const call = this.#session.send('Runtime.evaluate', {
      expression: pageCall(method, ...parameters),
      awaitPromise: true,
      returnByValue: true,
    });
    const reply = await within(call, this.#callMs, 'an answer of a frame');
    if (reply.exceptionDetails)
      throw new BoqError('BOQ_BROWSER', 'expected a frame to answer, it raised an error');
    return reply.result.value as T;
  }
}

/**
 * The frames of other sites that the page of `channel` shows now. Frames inside such frames are not looked into.
 * @param sessions of the frames in the page, by frame id
 */
export async function foreignFrames(
  channel: Channel,
  sessions: ReadonlyMap<string, CDPSession>,
): Promise<ForeignFrame[]> {
  const frames = await Promise.all(
    [...sessions].map(async ([frameId, session]) => {
      try {
        const owner = await channel.session.send('DOM.getFrameOwner', { frameId });
        const { backendNodeId } = owner;
        const { model } = await channel.session.send('DOM.getBoxModel', { backendNodeId });
        const [x = 0, y = 0, right = 0, , , bottom = 0] = model.content;
        return new ForeignFrame({ x, y, width: right - x, height: bottom - y }, session, channel.callMs);
      } catch {
        return null;
      }
    }),
  );
  return frames.filter((frame) => frame !== null);
}
