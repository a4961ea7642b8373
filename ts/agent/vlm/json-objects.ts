/**
 * JSON objects in a model's answer, found while it is still being written: inside a list, a fence, prose, or nothing.
 * What a model thinks aloud between <think> marks is not part of its answer.
 */

/** A complete object, as written. */
export interface FoundObject {
  text: string;
  /** How many objects and lists stand around it. */
  depth: number;
}

const thinkStart = '<think>';
const thinkEnd = '</think>';

export class JsonObjects {
  #text = '';
  #next = 0;
  /** Where the open brackets are. */
  readonly #open: number[] = [];
  #inString = false;
  #isEscaped = false;
  #isThinking = false;

  /** Everything said so far. */
  get text(): string {
    return this.#text;
  }

  /** True within an object or list. */
  get isOpen(): boolean {
    return this.#open.length > 0;
  }

  /** @returns the objects that became complete, inner ones before those around them */
  push(text: string): FoundObject[] {
    this.#text += text;
    const found: FoundObject[] = [];
    for (; this.#next < this.#text.length; this.#next++) {
      const object = this.#read(this.#text[this.#next]!);
      if (object) found.push(object);
    }
    return found;
  }

  #read(character: string): FoundObject | null {
    if (this.#isThinking) {
      if (character === '>' && this.#endsWith(thinkEnd)) this.#isThinking = false;
    } else if (this.#isEscaped) this.#isEscaped = false;
    else if (this.#inString) {
      if (character === '\\') this.#isEscaped = true;
      else if (character === '"') this.#inString = false;
    } else if (character === '{' || character === '[') this.#open.push(this.#next);
    else if (this.#open.length === 0) {
      // Quotation marks of prose open no string.
      if (character === '>' && this.#endsWith(thinkStart)) this.#isThinking = true;
    } else if (character === '"') this.#inString = true;
    else if (character === '}' || character === ']') return this.#close(character);
    return null;
  }

  #close(character: string): FoundObject | null {
    const from = this.#open.pop()!;
    if (character === ']' || this.#text[from] !== '{') return null;
    return { text: this.#text.slice(from, this.#next + 1), depth: this.#open.length };
  }

  #endsWith(mark: string): boolean {
    return this.#text.startsWith(mark, this.#next + 1 - mark.length);
  }
}

/** Objects of a whole text; where a stray bracket hides them, what follows it is read again. */
export function objectsIn(text: string): FoundObject[] {
  for (let from = 0; from >= 0 && from < text.length; ) {
    const reader = new JsonObjects();
    const found = reader.push(text.slice(from));
    if (found.length > 0 || !reader.isOpen) return found;
    from = text.indexOf('{', text.indexOf('{', from) + 1);
    if (from <= 0) return [];
  }
  return [];
}

/** The value of a text that is JSON, or nearly so; undefined where it is not. */
export function parseLenient(text: string): unknown {
  for (const candidate of [text, mended(text)]) {
    try {
      return JSON.parse(candidate);
    } catch {
      // Tried in its other form, or given up.
    }
  }
  return undefined;
}

const literals: Readonly<Record<string, string>> = { True: 'true', False: 'false', None: 'null' };

/** Python's spelling, commas before a closing bracket, and line ends within strings made JSON's. */
function mended(text: string): string {
  let result = '';
  let quote = '';
  for (let i = 0; i < text.length; i++) {
    const character = text[i]!;
    if (quote) {
      if (character === '\\') {
        const next = text[++i] ?? '';
        result += next === "'" ? "'" : `\\${next}`;
      } else if (character === quote) {
        result += '"';
        quote = '';
      } else if (character === '"') result += '\\"';
      else if (character < ' ') result += JSON.stringify(character).slice(1, -1);
      else result += character;
    } else if (character === '"' || character === "'") {
      quote = character;
      result += '"';
    } else if (character === ',' && /^\s*[}\]]/.test(text.slice(i + 1))) {
      // Left out.
    } else {
      const word = /^(?:True|False|None)\b/.exec(text.slice(i, i + 6))?.[0];
      result += word ? literals[word] : character;
      if (word) i += word.length - 1;
    }
  }
  return result;
}
