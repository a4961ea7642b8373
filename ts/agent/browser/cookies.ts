/**
 * Cookies in and out of a window, as a JSON file: a list as the DevTools protocol and most browser extensions write
 * it, or an object with such a list under `cookies`.
 */
import { randomUUID } from 'node:crypto';
import { readFile, rename, writeFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import { Ajv2020 } from 'ajv/dist/2020.js';
import type { Cookie, CookieData } from 'puppeteer';
import { BoqError } from '../../core/errors.js';

const sameSites = ['Strict', 'Lax', 'None', 'Default'] as const;

const validate = new Ajv2020().compile<{ cookies: Record<string, unknown>[] }>({
  type: 'object',
  properties: {
    cookies: {
      type: 'array',
      items: {
        type: 'object',
        properties: {
          name: { type: 'string', minLength: 1 },
          value: { type: 'string' },
          domain: { type: 'string', minLength: 1 },
          path: { type: 'string' },
          secure: { type: 'boolean' },
          httpOnly: { type: 'boolean' },
          sameSite: {},
          expires: { type: 'number' },
          expirationDate: { type: 'number' },
        },
        required: ['name', 'value', 'domain'],
      },
    },
  },
  required: ['cookies'],
});

/** @throws BOQ_FILE_NOT_FOUND, BOQ_USAGE where the file holds something else */
export async function readCookies(path: string): Promise<CookieData[]> {
  const file = resolve(path);
  let text: string;
  try {
    text = await readFile(file, 'utf8');
  } catch (error) {
    throw new BoqError('BOQ_FILE_NOT_FOUND', `Expected cookies in ${file}, it could not be read.`, {
      cause: error,
    });
  }
  let found: unknown;
  try {
    found = JSON.parse(text);
  } catch (error) {
    throw new BoqError('BOQ_USAGE', `Expected cookies as JSON in ${file}, it is none.`, { cause: error });
  }
  const list = Array.isArray(found) ? { cookies: found } : found;
  if (!validate(list)) {
    const [fault] = validate.errors ?? [];
    throw new BoqError(
      'BOQ_USAGE',
      `Expected a list of cookies in ${file}: ${fault?.instancePath.slice(1) ?? ''} ${fault?.message ?? ''}.`,
    );
  }
  return list.cookies.map(asCookie);
}

function asCookie(given: Record<string, unknown>): CookieData {
  const { name, value, domain, path = '/', secure, httpOnly, sameSite, expires, expirationDate } = given;
  const until = (expires ?? expirationDate) as number | undefined;
  const site = sameSites.find((one) => one.toLowerCase() === String(sameSite).toLowerCase());
  return {
    ...({ name, value, domain, path } as { name: string; value: string; domain: string; path: string }),
    ...(secure === undefined ? {} : { secure: secure as boolean }),
    ...(httpOnly === undefined ? {} : { httpOnly: httpOnly as boolean }),
    ...(site === undefined || site === 'Default' ? {} : { sameSite: site }),
    // Session cookies are written with -1 by some and with 0 by others.
    ...(until === undefined || until <= 0 ? {} : { expires: until }),
  };
}

/** Replaces the file; only its owner can read it. @throws BOQ_FILE_WRITE */
export async function writeCookies(path: string, cookies: readonly Cookie[]): Promise<void> {
  const file = resolve(path);
  const temporary = `${file}.${randomUUID()}.tmp`;
  try {
    await writeFile(temporary, `${JSON.stringify(cookies, null, 2)}\n`, { mode: 0o600 });
    await rename(temporary, file);
  } catch (error) {
    throw new BoqError('BOQ_FILE_WRITE', `Expected to write cookies to ${file}, it failed.`, {
      cause: error,
    });
  }
}
