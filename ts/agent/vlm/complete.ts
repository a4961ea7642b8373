/** A whole answer, for whoever has no use for its parts. */
import { BoqError } from '../../core/errors.js';
import type { Usage } from '../../store/types.js';
import type { ChatRequest, EndReason } from './chat.js';
import type { ChatClient } from './client.js';
import { objectsIn, parseLenient } from './json-objects.js';

export interface Answer {
  text: string;
  reason: EndReason;
  /** Why it ended other than well. */
  message: string;
  usage: Usage[];
}

/**
 * Asks once; the client tries again what passes by itself.
 * @throws BOQ_VLM_*, BOQ_TIMEOUT, BOQ_ABORTED; what the calls cost until then: {@link usageOf}
 */
export async function complete(client: ChatClient, request: ChatRequest): Promise<Answer> {
  const answer: Answer = { text: '', reason: 'empty', message: '', usage: [] };
  try {
    for await (const event of client.chat(request)) {
      if (event.type === 'text') answer.text += event.text;
      else if (event.type === 'usage') answer.usage.push(event.usage);
      else Object.assign(answer, { reason: event.reason, message: event.message });
    }
  } catch (error) {
    if (!(error instanceof BoqError)) throw error;
    const details = { ...error.details, usage: answer.usage };
    throw new BoqError(error.code, error.message, { cause: error.cause, details });
  }
  return answer;
}

/** What the calls behind an error cost; empty where it does not say. */
export function usageOf(error: unknown): Usage[] {
  const usage = error instanceof BoqError ? error.details?.['usage'] : undefined;
  return Array.isArray(usage) ? usage : [];
}

/** The first JSON object of an answer that no other object contains; undefined where there is none. */
export function objectOf(text: string): Record<string, unknown> | undefined {
  const objects = objectsIn(text);
  const outermost = Math.min(...objects.map(({ depth }) => depth));
  for (const { text: object } of objects.filter(({ depth }) => depth === outermost)) {
    const value = parseLenient(object);
    if (typeof value === 'object' && value !== null) return value as Record<string, unknown>;
  }
  return undefined;
}
