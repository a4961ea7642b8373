/** What doctor.js looks at. Works at any state of the set-up; the addon is loaded in a process of its own. */
import { spawnSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync, statfsSync } from 'node:fs';
import { availableParallelism, freemem, homedir, totalmem } from 'node:os';
import { join } from 'node:path';
import { capture } from './command.js';
import { pendingSteps } from './index.js';
import { prerequisites } from './prerequisites.js';
import { readRecord } from './record.js';

/**
 * @typedef {object} Finding
 * @property {string} name
 * @property {unknown} value
 * @property {'ok' | 'warning' | 'problem'} status a problem stops something that everybody needs
 * @property {string} [advice] what is wrong and the command that mends it
 */

const setupCommand = 'node scripts/setup.js';

function readJson(path) {
  try {
    return JSON.parse(readFileSync(path, 'utf8'));
  } catch {
    return undefined;
  }
}

function tools(context) {
  return Object.entries(prerequisites).map(([name, { find, missing }]) => {
    const value = find(context);
    if (value) return { name, value, status: 'ok' };
    return { name, value: null, status: name === 'node' ? 'problem' : 'warning', advice: missing(context) };
  });
}

function packageFindings(context) {
  const { name, version } = readJson(join(context.root, 'package.json'));
  const commit = capture(context, 'git', ['-C', context.root, 'rev-parse', '--short', 'HEAD']);
  const pending = pendingSteps(context).map((step) => step.name);
  return [
    {
      name: 'package',
      value: commit ? `${name} ${version} (${commit})` : `${name} ${version}`,
      status: 'ok',
    },
    { name: 'npm', value: capture(context, 'npm', ['--version']) ?? null, status: 'ok' },
    pending.length === 0
      ? { name: 'set-up', value: 'complete', status: 'ok' }
      : {
          name: 'set-up',
          value: `missing or out of date: ${pending.join(', ')}`,
          status: 'problem',
          advice: `Run \`${setupCommand}\`.`,
        },
  ];
}

const loadAddon = 'console.log(JSON.stringify(require(process.argv[1]).buildInfo()))';

/** buildInfo() of the addon, from a process that may die of a broken library without taking us along. */
function addon(context) {
  const libtorch = readRecord(context, 'libtorch');
  const findings = [
    libtorch
      ? {
          name: 'libtorch',
          value: `${libtorch.version} (${libtorch.variant}), ${libtorch.path}`,
          status: 'ok',
        }
      : { name: 'libtorch', value: null, status: 'problem', advice: `Run \`${setupCommand}\`.` },
  ];
  const path = join(context.root, 'build/Release/boq_native.node');
  const env = { ...context.env, OMP_WAIT_POLICY: 'PASSIVE' };
  const child = spawnSync(process.execPath, ['-e', loadAddon, path], {
    encoding: 'utf8',
    env,
    timeout: 60_000,
  });
  if (child.status !== 0) {
    const reason = existsSync(path)
      ? (child.stderr.match(/^Error: .*$/m)?.[0] ??
        `it ended with ${child.signal ?? `exit code ${child.status}`}`)
      : `${path} does not exist`;
    const advice = `The addon cannot be loaded: ${reason}. Remove build/ and run \`${setupCommand}\`.`;
    return [...findings, { name: 'addon', value: null, status: 'problem', advice }];
  }
  const info = JSON.parse(child.stdout);
  const facts = {
    addon: info.version,
    torch: info.torch,
    cuda: info.cudaAvailable ? info.cudaDevices : null,
  };
  const rest = { 'cpu capability': info.cpuCapability, bf16: info.bf16, threads: info.threads };
  for (const [name, value] of Object.entries({ ...facts, ...rest }))
    findings.push({ name, value, status: 'ok' });
  if (info.variant === 'cuda' && !info.cudaAvailable) {
    const advice = `The CUDA variant is set up, but CUDA cannot be used: ${info.cudaProblem}. Check the driver with \`nvidia-smi\`.`;
    Object.assign(
      findings.find(({ name }) => name === 'cuda'),
      { status: 'warning', advice },
    );
  }
  return findings;
}

function browser(context) {
  const path = context.env.BOQ_BROWSER || readRecord(context, 'browser')?.path;
  const version = path && capture(context, path, ['--version']);
  if (version)
    return [{ name: 'browser', value: `${version.trim()}, ${path}`, status: 'ok' }, headlessShell(context)];
  const advice = path
    ? `${path} does not start: correct BOQ_BROWSER, or run \`${setupCommand}\`.`
    : `No browser has been found yet: run \`${setupCommand}\`, or set BOQ_BROWSER to its path.`;
  return [{ name: 'browser', value: null, status: 'problem', advice }];
}

function headlessShell(context) {
  const found = ['chromium-headless-shell', 'chrome-headless-shell'].find((name) =>
    capture(context, name, ['--version']),
  );
  if (found) return { name: 'headless shell', value: found, status: 'ok' };
  const advice =
    'Benchmarks run in the whole browser; with the headless shell they take about 0.6 of the processor time: `apt-get install chromium-headless-shell`.';
  return { name: 'headless shell', value: null, status: 'warning', advice };
}

function miniwob(context) {
  const folder = join(context.root, 'third_party/miniwob/html/miniwob');
  if (!existsSync(folder)) {
    return [{ name: 'MiniWoB++', value: null, status: 'problem', advice: `Run \`${setupCommand}\`.` }];
  }
  const count = readdirSync(folder).filter((name) => name.endsWith('.html')).length;
  return [{ name: 'MiniWoB++', value: `${count} pages (MIT)`, status: 'ok' }];
}

/** The licence that a checkpoint's own card states. */
function licenceOf(folder) {
  try {
    const card = readFileSync(join(folder, 'README.md'), 'utf8').match(/^---\n([\s\S]*?)\n---/)?.[1] ?? '';
    const field = (name) => card.match(new RegExp(`^${name}:\\s*(.+)$`, 'm'))?.[1].trim();
    const licence = field('license');
    return (licence === 'other' ? field('license_name') : licence) ?? 'licence not stated';
  } catch {
    return 'licence not stated';
  }
}

function subfolders(path) {
  if (!existsSync(path)) return [];
  return readdirSync(path, { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .map((entry) => join(path, entry.name));
}

function checkpointFolders(context) {
  const home = context.env.HF_HOME || join(context.env.HOME || homedir(), '.cache/huggingface');
  const hub = context.env.HF_HUB_CACHE || join(home, 'hub');
  const cached = subfolders(hub).flatMap((path) => subfolders(join(path, 'snapshots')));
  return [...subfolders(join(context.root, 'models')), ...cached];
}

function checkpoints(context) {
  const findings = [];
  for (const folder of checkpointFolders(context)) {
    const config = readJson(join(folder, 'config.json'));
    if (config?.kind === 'iql') findings.push({ name: 'Q-function', value: folder, status: 'ok' });
    if (config?.model_type === 'qwen2_5_vl') {
      findings.push({ name: 'checkpoint', value: `${folder} (${licenceOf(folder)})`, status: 'ok' });
    }
  }
  if (findings.some(({ name }) => name === 'checkpoint')) return findings;
  return [
    ...findings,
    { name: 'checkpoint', value: null, status: 'problem', advice: `Run \`${setupCommand}\`.` },
  ];
}

/** Names only: values may be keys. */
function endpoints(context) {
  const names = Object.keys(context.env).filter((name) =>
    /^(OPENAI_|BOQ_\w*(URL|KEY|ENDPOINT|MODEL)|HF_TOKEN$)/.test(name),
  );
  return [
    {
      name: 'endpoints',
      value: names.length > 0 ? names.sort().join(', ') : 'none configured',
      status: 'ok',
    },
  ];
}

function resources(context) {
  const { bavail, bsize } = statfsSync(context.root);
  const free = (bavail * bsize) / 1e9;
  const gigabytes = (bytes) => (bytes / 1e9).toFixed(1);
  const disk = { name: 'disk', value: `${free.toFixed(1)} GB free`, status: 'ok' };
  if (free < 3) {
    Object.assign(disk, {
      status: 'warning',
      advice: 'Less than 3 GB are free: set-up and runs need that much; free some space.',
    });
  }
  const memory = `${gigabytes(freemem())} of ${gigabytes(totalmem())} GB free`;
  return [
    { name: 'processors', value: availableParallelism(), status: 'ok' },
    { name: 'memory', value: memory, status: 'ok' },
    disk,
  ];
}

/** @returns {Finding[]} */
export function inspect(context) {
  return [packageFindings, tools, addon, browser, miniwob, checkpoints, endpoints, resources].flatMap(
    (look) => look(context),
  );
}
