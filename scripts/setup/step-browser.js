import { accessSync, constants, existsSync, readFileSync } from 'node:fs';
import { capture, runCommand } from './command.js';
import { SetupError } from './error.js';
import { readRecord, writeRecord } from './record.js';

const shellPackage = 'chromium-headless-shell';

function isExecutable(path) {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

/** The system's package is a real one on Debian; Ubuntu's only points to a snap, which has no place in a container. */
function isDebian() {
  return existsSync('/etc/os-release') && /^ID=debian$/m.test(readFileSync('/etc/os-release', 'utf8'));
}

async function installPackages(context, ...packages) {
  context.log(`  browser: installing ${packages.join(' and ')}`);
  const env = { DEBIAN_FRONTEND: 'noninteractive' };
  const install = ['install', '-y', '--no-install-recommends', ...packages];
  await runCommand(context, 'browser', 'apt-get', ['update'], { env, holdLock: false });
  await runCommand(context, 'browser', 'apt-get', install, { env, holdLock: false });
}

/** Benchmarks run in the headless shell at about 0.6 of the processor time, and do without where there is none. */
async function addHeadlessShell(context, { findHeadlessShell }) {
  if (findHeadlessShell() !== null || context.env.BOQ_BROWSER || context.env.PUPPETEER_EXECUTABLE_PATH)
    return;
  try {
    await installPackages(context, shellPackage);
  } catch (error) {
    context.log(`  browser: going on without ${shellPackage}: ${error.message}`);
  }
}

async function downloadChrome(context, advice) {
  const cli = 'node_modules/puppeteer/lib/esm/puppeteer/node/cli.js';
  await runCommand(context, 'browser', process.execPath, [cli, 'browsers', 'install', 'chrome'], { advice });
}

export const browser = {
  name: 'browser',
  title: 'a browser',
  needs: [],
  isComplete(context) {
    const named = context.env.BOQ_BROWSER || context.env.PUPPETEER_EXECUTABLE_PATH;
    if (named) return isExecutable(named);
    const path = readRecord(context, 'browser')?.path;
    return path !== undefined && isExecutable(path);
  },
  async run(context) {
    for (const name of ['BOQ_BROWSER', 'PUPPETEER_EXECUTABLE_PATH']) {
      const named = context.env[name];
      if (named && !isExecutable(named)) {
        throw new SetupError(`${name}=${named} is not an executable file; correct it or unset it.`);
      }
    }
    const launch = await import(new URL('../../dist/agent/browser/launch.js', import.meta.url).href);
    const { findBrowser } = launch;
    let path = findBrowser();
    const command = 'apt-get update && apt-get install -y chromium';
    const isRoot = process.getuid?.() === 0;
    const canInstall = isDebian() && isRoot && Boolean(capture(context, 'apt-get', ['--version']));
    if (!path && canInstall) {
      await installPackages(context, 'chromium', shellPackage).catch((error) =>
        context.log(`  browser: ${error.message}`),
      );
      path = findBrowser();
    }
    if (!path) {
      const hint = `No browser was found; \`${isRoot ? command : `sudo sh -c '${command}'`}\` installs one, or set BOQ_BROWSER to its path.`;
      context.log(`  browser: ${hint} Trying Puppeteer's own download.`);
      await downloadChrome(context, hint);
      path = findBrowser();
      if (!path) throw new SetupError(hint);
    }
    if (canInstall) await addHeadlessShell(context, launch);
    writeRecord(context, 'browser', { path });
  },
};
