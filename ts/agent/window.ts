/** The browser window of one agent: what it may see, where it may go, what it brings along and what it leaves. */
import { mkdir, stat } from 'node:fs/promises';
import type { CookieData } from 'puppeteer';
import { BoqError } from '../core/errors.js';
import { readCookies, writeCookies } from './browser/cookies.js';
import { DomainPolicy } from './browser/domain-policy.js';
import { BrowserPool, type PoolOptions } from './browser/pool.js';
import { type Secret, Secrets } from './browser/secrets.js';
import type { BrowserSession, Credentials } from './browser/session.js';

/** What the window of an agent is opened with. */
export interface WindowOptions {
  /** Where the task begins. */
  url: string;
  /** CSS pixels, and image pixels to one of them. Default 1280 by 720, 1. */
  viewport?: { width: number; height: number; deviceScaleFactor?: number };
  /** Shows the browser. */
  headed?: boolean;
  /** The user's own profile folder, with its cookies; otherwise a temporary one. */
  profile?: string;
  /**
   * Where it may go, beside where it begins: 'example.org' means it and what is under it, 'file:' a whole scheme.
   * Everything public where left out.
   */
  allow?: readonly string[];
  /** Where it may not go, whatever is allowed. */
  deny?: readonly string[];
  /** True to let it visit loopback, private and link-local addresses other than the one it begins at. */
  allowPrivate?: boolean;
  /**
   * Values that are typed by name: a text `{{name}}` is replaced as it is typed, and no model, trace or event ever
   * shows the value. `domains` says where it may be typed.
   */
  secrets?: Readonly<Record<string, Secret | string>>;
  /** For pages that ask before they show anything (basic authentication), at the origin of `url`; may name secrets. */
  basicAuth?: { username: string; password: string };
  /** A JSON file of cookies that the window begins with. */
  cookies?: string;
  /** Where the window's cookies are written at the end, however the task ended. */
  saveCookies?: string;
  /** Folder that downloads are written to, made where it is missing; downloads are refused where left out. */
  downloads?: string;
  /** Folder whose files may be given to file fields; none where left out. */
  uploads?: string;
}

/**
 * Of pictures as large as this, encoding WebP costs the browser some 50 ms of processor time each, JPEG 2; every
 * endpoint takes JPEG, and not all take WebP.
 */
export const agentScreenshot = { format: 'jpeg', quality: 90 } as const;

const defaultViewport = { width: 1280, height: 720, deviceScaleFactor: 1 };

/** The viewport with all its defaults. @throws BOQ_USAGE for sizes that no browser shows */
export function viewportOf({ viewport }: Pick<WindowOptions, 'viewport'>): typeof defaultViewport {
  const whole = { ...defaultViewport, ...viewport };
  const { width, height, deviceScaleFactor } = whole;
  const sides = [width, height].every((side) => Number.isInteger(side) && side >= 50 && side <= 10_000);
  if (!sides || !(deviceScaleFactor >= 0.25 && deviceScaleFactor <= 8)) {
    throw new BoqError(
      'BOQ_USAGE',
      `Expected a viewport of 50 to 10,000 pixels a side at a scale of 0.25 to 8, got ${width} by ${height} at ` +
        `${deviceScaleFactor}.`,
    );
  }
  return whole;
}

/** A window that is about to be opened: everything it needs has been checked and read. */
export class AgentWindow {
  /** What may be typed by name. */
  readonly secrets: Secrets;
  readonly #options: WindowOptions;
  readonly #pool: PoolOptions;
  readonly #cookies: readonly CookieData[];

  private constructor(
    options: WindowOptions,
    secrets: Secrets,
    pool: PoolOptions,
    cookies: readonly CookieData[],
  ) {
    this.#options = options;
    this.secrets = secrets;
    this.#pool = pool;
    this.#cookies = cookies;
  }

  /** @throws BOQ_USAGE for options that contradict each other, BOQ_FILE_NOT_FOUND, BOQ_FILE_WRITE */
  static async prepare(options: WindowOptions): Promise<AgentWindow> {
    const { url, headed, profile, allow, deny, allowPrivate, downloads, uploads } = options;
    const secrets = new Secrets(options.secrets);
    const policy = new DomainPolicy({
      start: url,
      ...(allow ? { allow } : {}),
      ...(deny ? { deny } : {}),
      ...(allowPrivate === undefined ? {} : { allowPrivate }),
    });
    const refused = await policy.refuse(url);
    if (refused !== null) {
      throw new BoqError('BOQ_USAGE', `Expected a start that the agent may visit, but ${url}: ${refused}.`);
    }
    await requireFolder(uploads);
    if (downloads !== undefined) await makeFolder(downloads);
    const credentials = await credentialsOf(options, secrets);
    const pool: PoolOptions = {
      size: 1,
      headless: !headed,
      viewport: viewportOf(options),
      screenshot: agentScreenshot,
      policy,
      ...(profile === undefined ? {} : { profile }),
      ...(downloads === undefined ? {} : { downloads }),
      ...(uploads === undefined ? {} : { uploads }),
      ...(credentials ? { credentials } : {}),
    };
    const cookies = options.cookies === undefined ? [] : await readCookies(options.cookies);
    return new AgentWindow(options, secrets, pool, cookies);
  }

  /**
   * Opens the window at its start, lends it to `work`, and closes it with its browser.
   * @throws BOQ_BROWSER_NOT_FOUND, BOQ_BROWSER, BOQ_FILE_WRITE, and what `work` throws
   */
  async use<T>(work: (session: BrowserSession) => Promise<T>): Promise<T> {
    const { url, saveCookies } = this.#options;
    await using pool = new BrowserPool(this.#pool);
    return await pool.use(async (session) => {
      if (this.#cookies.length > 0) await session.setCookies(this.#cookies);
      try {
        await session.begin(url);
        return await work(session);
      } finally {
        // A browser that died has none to keep, and its own error is the one to tell.
        const kept = saveCookies === undefined ? null : await session.cookies().catch(() => null);
        if (saveCookies !== undefined && kept) await writeCookies(saveCookies, kept);
      }
    });
  }
}

async function credentialsOf(
  { url, basicAuth }: Pick<WindowOptions, 'url' | 'basicAuth'>,
  secrets: Secrets,
): Promise<Credentials | null> {
  if (!basicAuth) return null;
  const [username, password] = await Promise.all(
    [basicAuth.username, basicAuth.password].map(async (text) => {
      const filled = await secrets.fill(text, url);
      if ('text' in filled) return filled.text;
      throw new BoqError('BOQ_USAGE', `Expected a name and a password for ${url}: ${filled.refused}.`);
    }),
  );
  return { username: username!, password: password!, origin: new URL(url).origin };
}

async function requireFolder(path: string | undefined): Promise<void> {
  if (path === undefined) return;
  const found = await stat(path).catch(() => null);
  if (!found?.isDirectory()) {
    throw new BoqError('BOQ_FILE_NOT_FOUND', `Expected a folder for uploads, ${path} is none.`);
  }
}

async function makeFolder(path: string): Promise<void> {
  try {
    await mkdir(path, { recursive: true });
  } catch (error) {
    throw new BoqError('BOQ_FILE_WRITE', `Expected a folder for downloads, ${path} could not be made.`, {
      cause: error,
    });
  }
}
