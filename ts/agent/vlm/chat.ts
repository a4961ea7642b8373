/** What is said to a model and what comes back, before and after the wire. */
import type { Json, Usage } from '../../store/types.js';
import type { Screenshot } from '../types.js';

/** Text, or a picture; a picture can be given the exact size at which it is sent. */
export type Part =
  | { type: 'text'; text: string }
  | { type: 'image'; screenshot: Screenshot; size?: { width: number; height: number } };

export interface ChatMessage {
  role: 'system' | 'user' | 'assistant';
  content: readonly Part[];
}

export interface JsonSchema {
  [key: string]: Json;
}

export interface ChatRequest {
  purpose: Usage['purpose'];
  /**
   * The messages, shorter with each level; null where nothing is left to leave out. Level 0 is everything; the next is
   * asked for when the model's context overflows.
   */
  messages(level: number): readonly ChatMessage[] | null;
  /** The form of the answer; the endpoint is held to it as strictly as it allows. */
  schema?: { name: string; schema: JsonSchema };
  temperature?: number;
  signal?: AbortSignal | undefined;
}

/** Why an answer ended. `broken`: the connection did; `length`: the limit on its length; `empty`: nothing was said. */
export type EndReason = 'stop' | 'length' | 'refusal' | 'broken' | 'empty';

export type ChatEvent =
  | { type: 'text'; text: string }
  /** What one call cost; every call has one, failed ones too. */
  | { type: 'usage'; usage: Usage }
  | { type: 'end'; reason: EndReason; message: string };

export function say(role: ChatMessage['role'], text: string): ChatMessage {
  return { role, content: [{ type: 'text', text }] };
}

/** Messages as people read them; pictures by their size. */
export function renderMessages(messages: readonly ChatMessage[]): string {
  const part = (one: Part): string => {
    if (one.type === 'text') return one.text;
    const { width, height } = one.size ?? one.screenshot;
    return `[screenshot ${width}x${height}]`;
  };
  return messages.map(({ role, content }) => `--- ${role}\n${content.map(part).join('\n')}`).join('\n\n');
}

/** Rough size in tokens: four characters, or 28 x 28 pixels, each. Used where the endpoint does not count. */
export function estimateTokens(messages: readonly ChatMessage[]): number {
  let tokens = 0;
  for (const { content } of messages) {
    tokens += 4;
    for (const part of content) {
      if (part.type === 'text') tokens += part.text.length / 4;
      else {
        const { width, height } = part.size ?? part.screenshot;
        tokens += (width * height) / 784;
      }
    }
  }
  return Math.ceil(tokens);
}
