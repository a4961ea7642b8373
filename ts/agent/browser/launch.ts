/**
 * Starts one browser with a profile of its own and makes sure that neither survives us: not after close, an error,
 * Ctrl-C or a kill of this process.
 */
import { accessSync, constants, existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import puppeteer, { type Browser } from 'puppeteer';
import { BoqError } from '../../core/errors.js';
import { recordedBrowser } from '../../core/setup-paths.js';
import { Targets } from './targets.js';

/** Which browser is started, and how. */
export interface LaunchOptions {
  /** Path of the browser; otherwise BOQ_BROWSER, the one that set-up found, the system's Chrome or Chromium, Puppeteer's own download. */
  executablePath?: string;
  /**
   * 'shell' takes the headless shell where there is one: Chromium without a user interface, which shows the same pages
   * at about 0.6 of the processor time. Real sites should meet the whole browser. Default true.
   */
  headless?: boolean | 'shell';
  /** The user's own profile folder; otherwise a temporary one, removed at the end. */
  profile?: string;
}

const systemNames = [
  'chromium',
  'chromium-browser',
  'google-chrome',
  'google-chrome-stable',
  'chrome',
  'microsoft-edge',
];
const shellNames = ['chromium-headless-shell', 'chrome-headless-shell'];
const profilePrefix = 'boq-profile-';

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

function onPath(names: readonly string[]): string | null {
  const folders = (process.env.PATH ?? '').split(delimiter).filter(Boolean);
  const paths = names.flatMap((name) => folders.map((folder) => join(folder, name)));
  return paths.find(isExecutable) ?? null;
}

/** What Puppeteer's own command has downloaded, or null. */
function downloaded(kind: 'browser' | 'shell'): string | null {
  try {
    const path = puppeteer.executablePath({ headless: kind === 'shell' ? 'shell' : true });
    return existsSync(path) ? path : null;
  } catch {
    return null;
  }
}

const namedBrowser = (): string | undefined =>
  process.env.BOQ_BROWSER || process.env.PUPPETEER_EXECUTABLE_PATH || undefined;

/** Path of a browser, or null where there is none. */
export function findBrowser(): string | null {
  const named = namedBrowser();
  if (named) return isExecutable(named) ? named : null;
  const recorded = recordedBrowser();
  if (recorded && isExecutable(recorded)) return recorded;
  const mac = '/Applications/Google Chrome.app/Contents/MacOS/Google Chrome';
  return onPath(systemNames) ?? (isExecutable(mac) ? mac : null) ?? downloaded('browser');
}

/** Path of the headless shell, or null where there is none, or where a browser is named by the environment. */
export function findHeadlessShell(): string | null {
  return namedBrowser() ? null : (onPath(shellNames) ?? downloaded('shell'));
}

/** True where the browser's sandbox cannot work: it refuses to run as root. */
export function needsNoSandbox(): boolean {
  return process.platform === 'linux' && process.getuid?.() === 0;
}

let announced = false;

function announceNoSandbox(): void {
  if (announced || !needsNoSandbox()) return;
  announced = true;
  process.emitWarning(
    'the browser runs without its sandbox, as it cannot have one as root: visit only pages that you trust, or use another account',
    { code: 'BOQ_NO_SANDBOX' },
  );
}

const running = new Set<{ browser: Browser; profile: string | null }>();

/** Kills the browser with its helpers; each browser leads a process group of its own. */
function kill(browser: Browser): void {
  const pid = browser.process()?.pid;
  if (!pid) return;
  try {
    process.kill(process.platform === 'win32' ? pid : -pid, 'SIGKILL');
  } catch {
    // Gone already.
  }
}

function removeProfile(profile: string): void {
  try {
    rmSync(profile, { recursive: true, force: true, maxRetries: 10, retryDelay: 20 });
  } catch {
    // A helper process wrote into it while it was removed; the next start sweeps it.
  }
}

function killAll(): void {
  for (const { browser, profile } of running) {
    kill(browser);
    if (profile) removeProfile(profile);
  }
  running.clear();
}

let guarded = false;

// Whoever handles a signal in an orderly way (the command line does) closes the browser; here is only the last resort.
function guardProcess(): void {
  if (guarded) return;
  guarded = true;
  process.on('exit', killAll);
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
    const onSignal = (): void => {
      if (process.listenerCount(signal) > 1) return;
      killAll();
      process.off(signal, onSignal);
      process.kill(process.pid, signal);
    };
    process.on(signal, onSignal);
  }
}

/** Removes profiles whose process was killed before it could do so itself. */
function sweepProfiles(): void {
  for (const name of readdirSync(tmpdir())) {
    const owner = name.startsWith(profilePrefix) ? Number(name.slice(profilePrefix.length).split('-')[0]) : 0;
    if (!owner || owner === process.pid) continue;
    try {
      process.kill(owner, 0);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ESRCH') continue;
      removeProfile(join(tmpdir(), name));
    }
  }
}

export interface RunningBrowser {
  browser: Browser;
  targets: Targets;
  close(): Promise<void>;
}

/**
 * @throws BoqError BOQ_BROWSER_NOT_FOUND where no browser is installed, BOQ_BROWSER where it does not start.
 */
export async function launchBrowser(options: LaunchOptions = {}): Promise<RunningBrowser> {
  const shell = options.headless === 'shell' ? findHeadlessShell() : null;
  const executablePath = options.executablePath ?? shell ?? findBrowser();
  if (!executablePath || !isExecutable(executablePath)) {
    const wanted = options.executablePath ?? process.env.BOQ_BROWSER;
    throw new BoqError(
      'BOQ_BROWSER_NOT_FOUND',
      wanted
        ? `expected a browser at ${wanted}, found no executable file there; correct the path or unset BOQ_BROWSER`
        : 'expected Chrome or Chromium on this machine, found none; run `node scripts/setup.js`, or set BOQ_BROWSER to its path',
    );
  }
  announceNoSandbox();
  sweepProfiles();
  const profile = options.profile ? null : mkdtempSync(join(tmpdir(), `${profilePrefix}${process.pid}-`));
  let browser: Browser;
  try {
    browser = await puppeteer.launch({
      executablePath,
      // The shell is told from the whole browser by its file alone.
      headless: executablePath === shell ? 'shell' : (options.headless ?? true) !== false,
      userDataDir: options.profile ?? profile ?? '',
      defaultViewport: null,
      // Events of every request would cost a tenth of each page load; the page script counts open requests itself.
      networkEnabled: false,
      // Over a pipe the browser ends with this process, however that ends.
      pipe: true,
      handleSIGINT: false,
      handleSIGTERM: false,
      handleSIGHUP: false,
      protocolTimeout: 60_000,
      acceptInsecureCerts: false,
      args: [
        ...(needsNoSandbox() ? ['--no-sandbox'] : []),
        '--no-first-run',
        '--no-default-browser-check',
        '--disable-gpu',
        '--disable-quic',
        '--disable-sync',
        '--disable-component-update',
        '--disable-background-networking',
        '--disable-default-apps',
        '--disable-domain-reliability',
        '--disable-client-side-phishing-detection',
        // Several pages work at once; all of them must go on drawing.
        '--disable-background-timer-throttling',
        '--disable-backgrounding-occluded-windows',
        '--disable-renderer-backgrounding',
        // A document in place of the last one, not in a frame made anew, saves a tenth of each page load.
        '--disable-features=CalculateNativeWinOcclusion,Translate,MediaRouter,OptimizationHints,HttpsUpgrades,RenderDocument',
        '--mute-audio',
        '--hide-scrollbars',
        '--force-color-profile=srgb',
        '--lang=en-US',
      ],
    });
  } catch (error) {
    if (profile) removeProfile(profile);
    throw new BoqError(
      'BOQ_BROWSER',
      `expected ${executablePath} to start, but ${String((error as Error).message).split('\n')[0]}`,
      {
        cause: error,
      },
    );
  }
  const entry = { browser, profile };
  running.add(entry);
  guardProcess();
  // Helpers that outlive a killed browser hold its pipe open, and every call would wait for its deadline.
  browser.process()?.once('exit', () => kill(browser));
  const close = async (): Promise<void> => {
    if (!running.delete(entry)) return;
    const child = browser.process();
    const gone =
      // One killed by a signal has no exit code, and its event has passed.
      child && child.exitCode === null && child.signalCode === null
        ? new Promise<void>((resolve) => child.once('exit', () => resolve()))
        : null;
    const patience = new Promise<'late'>((resolve) => setTimeout(resolve, 3000, 'late').unref());
    await Promise.race([browser.close().catch(() => undefined), patience]);
    if (gone && (await Promise.race([gone, patience])) === 'late') {
      kill(browser);
      await gone;
    }
    if (profile) removeProfile(profile);
  };
  try {
    return { browser, targets: await Targets.watch(browser), close };
  } catch (error) {
    await close();
    throw new BoqError('BOQ_BROWSER', `expected ${executablePath} to answer, but ${String(error)}`, {
      cause: error,
    });
  }
}
