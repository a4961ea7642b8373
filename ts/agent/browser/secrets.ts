/**
 * Secrets are typed by name: a policy writes `{{password}}` and never learns the value; what comes back from the
 * page is masked the same way before anyone reads or stores it.
 */
import { BoqError } from '../../core/errors.js';
import { DomainPolicy } from './domain-policy.js';

/** A value that is typed by name. */
export interface Secret {
  value: string;
  /** Where it may be typed; anywhere where left out. */
  domains?: readonly string[];
}

const shortestMasked = 3;

/** The values that one agent may type, by name. */
export class Secrets {
  readonly #values: ReadonlyMap<string, { value: string; policy: DomainPolicy | null }>;

  /** @throws BoqError BOQ_USAGE for a name that is no word or a value that is empty. */
  constructor(secrets: Readonly<Record<string, Secret | string>> = {}) {
    this.#values = new Map(
      Object.entries(secrets).map(([name, given]) => {
        const { value, domains } = typeof given === 'string' ? { value: given, domains: undefined } : given;
        if (!/^\w+$/.test(name) || !value) {
          throw new BoqError(
            'BOQ_USAGE',
            `expected secrets as name and value, got the name "${name}"${value ? '' : ' without a value'}`,
          );
        }
        return [
          name,
          { value, policy: domains ? new DomainPolicy({ allow: domains, allowPrivate: true }) : null },
        ];
      }),
    );
  }

  get names(): string[] {
    return [...this.#values.keys()];
  }

  /** What must not be shown: each value, and what an address makes of it. */
  get values(): string[] {
    return [...this.#values.values()].flatMap(({ value }) => forms(value));
  }

  /**
   * Puts values in place of placeholders.
   * @returns the text, or why a secret may not be typed on this page.
   */
  async fill(text: string, url: string): Promise<{ text: string } | { refused: string }> {
    let filled = text;
    for (const [placeholder, name] of text.matchAll(/\{\{(\w+)\}\}/g)) {
      const secret = this.#values.get(name ?? '');
      if (!secret)
        return { refused: `there is no secret named ${name}; known are ${this.names.join(', ') || 'none'}` };
      const reason = secret.policy ? await secret.policy.refuse(url) : null;
      if (reason !== null) return { refused: `the secret ${name} may not be typed here: ${reason}` };
      filled = filled.replace(placeholder, () => secret.value);
    }
    return { text: filled };
  }

  /** Puts placeholders in place of values. */
  mask(text: string): string {
    let masked = text;
    // Longer ones first: one secret may contain another.
    const entries = [...this.#values]
      .flatMap(([name, { value }]) => forms(value).map((form) => ({ name, form })))
      .sort((a, b) => b.form.length - a.form.length);
    for (const { name, form } of entries) {
      if (form.length >= shortestMasked) masked = masked.replaceAll(form, `{{${name}}}`);
    }
    return masked;
  }
}

/** A value as it is, in an address, and in the address of a submitted form. */
function forms(value: string): string[] {
  const submitted = new URLSearchParams({ v: value }).toString().slice('v='.length);
  return [...new Set([value, encodeURIComponent(value), encodeURI(value), submitted])];
}
