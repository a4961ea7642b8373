/** Opens a browser, prints its process and profile, and waits to be killed. */
import { launchBrowser } from '../../ts/agent/browser/launch.js';

const { browser } = await launchBrowser();
const child = browser.process();
const profile = child?.spawnargs.find((argument) => argument.startsWith('--user-data-dir='))?.split('=')[1];
process.stdout.write(`${JSON.stringify({ pid: child?.pid, profile })}\n`);
setInterval(() => undefined, 1000);
