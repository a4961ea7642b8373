/** Keeps secrets out of what is written: known values and the usual shapes of keys are replaced by a mark. */

const mark = '[secret]';
const shortestSecret = 6;

// Shapes that are keys whoever issued them: OpenAI-style, GitHub, Slack, AWS, bearer tokens, passwords in a URL.
const shapes: readonly [RegExp, string][] = [
  [/\b(?:sk|pk|rk)-[A-Za-z0-9_-]{20,}/g, mark],
  [/\bgh[pousr]_[A-Za-z0-9]{30,}/g, mark],
  [/\bxox[abprs]-[A-Za-z0-9-]{20,}/g, mark],
  [/\bAKIA[A-Z0-9]{16}\b/g, mark],
  [/\bBearer\s+[A-Za-z0-9._~+/-]{16,}=*/gi, `Bearer ${mark}`],
  [/(\b[a-z][a-z0-9+.-]*:\/\/[^\s/:@]*):[^\s/@]+@/gi, `$1:${mark}@`],
];

/** Replaces secrets in what is about to be written. */
export type Masker = (text: string) => string;

/** Values of environment variables whose names say that they are secret. */
export function secretsOfEnvironment(environment: NodeJS.ProcessEnv = process.env): string[] {
  return Object.entries(environment)
    .filter(([name]) => /(?:^|_)(?:API_?KEY|ACCESS_KEY|TOKEN|SECRET|PASSWORD)$/i.test(name))
    .map(([, value]) => value ?? '')
    .filter((value) => value.length >= 12);
}

/** @param secrets values that must not be written; shorter than six characters they are left, as they would hit words */
export function createMasker(secrets: readonly string[] = []): Masker {
  const known = [...new Set(secrets)]
    .filter((secret) => secret.length >= shortestSecret)
    .sort((a, b) => b.length - a.length);
  return (text) => {
    let masked = text;
    for (const secret of known) masked = masked.replaceAll(secret, mark);
    for (const [shape, replacement] of shapes) masked = masked.replace(shape, replacement);
    return masked;
  };
}

/** JSON text of a record, every string in it masked. */
export function maskedJson(value: unknown, mask: Masker, indent?: number): string {
  return JSON.stringify(value, (_, item: unknown) => (typeof item === 'string' ? mask(item) : item), indent);
}
