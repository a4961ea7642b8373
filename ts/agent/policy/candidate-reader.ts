/** Candidates in a model's answer, each as soon as it is complete, however the model wraps them. */
import { JsonObjects, objectsIn, parseLenient } from '../vlm/json-objects.js';

export class CandidateReader {
  readonly #objects = new JsonObjects();
  #found = 0;

  /** Everything said so far. */
  get text(): string {
    return this.#objects.text;
  }

  /** @returns candidates that became complete, unchecked */
  push(text: string): unknown[] {
    const found = this.#objects.push(text).flatMap(({ text: object }) => candidateIn(object));
    this.#found += found.length;
    return found;
  }

  /**
   * To be asked once the answer is over.
   * @returns what only then counts as a candidate: after a stray bracket, or actions without anything around them
   */
  end(): unknown[] {
    if (this.#found > 0) return [];
    const objects = objectsIn(this.text);
    const late = objects.flatMap(({ text }) => candidateIn(text));
    if (late.length > 0) return late;
    const bare = objects
      .map(({ text }) => parseLenient(text))
      .filter((value) => typeof (value as { type?: unknown } | undefined)?.type === 'string');
    return bare.map((action) => ({ action }));
  }
}

/** The object where it has an action, else nothing. */
function candidateIn(text: string): unknown[] {
  if (!text.includes('action')) return [];
  const value = parseLenient(text);
  const isCandidate = typeof value === 'object' && value !== null && Object.hasOwn(value, 'action');
  // A list that is called "action" by mistake holds candidates, and they came before it.
  return isCandidate && !Array.isArray((value as { action: unknown }).action) ? [value] : [];
}
