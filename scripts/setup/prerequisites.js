/** What must be on the machine before set-up can work, each with the command that installs it. */
import { capture } from './command.js';
import { SetupError } from './error.js';

const minimumNode = [20, 19];
const minimumCmake = [3, 22];

function atLeast(version, minimum) {
  const [major = 0, minor = 0] = version.split('.').map(Number);
  return major > minimum[0] || (major === minimum[0] && minor >= minimum[1]);
}

/** The command for this machine's package manager. */
function install(context, names) {
  const managers = [
    ['apt-get', `apt-get install -y ${names.apt}`],
    ['dnf', `dnf install -y ${names.dnf}`],
    ['apk', `apk add ${names.apk}`],
    ['pacman', `pacman -S --noconfirm ${names.pacman}`],
    ['zypper', `zypper install -y ${names.zypper ?? names.dnf}`],
    ['brew', `brew install ${names.brew}`],
  ];
  const found = managers.find(([command]) => capture(context, command, ['--version']) !== undefined);
  const command = found?.[1] ?? managers[0][1];
  const asRoot = found?.[0] === 'brew' || process.getuid?.() === 0;
  return asRoot ? command : `sudo ${command}`;
}

/** Every prerequisite: `find` returns its version, or undefined; `missing` is one sentence. */
export const prerequisites = {
  node: {
    find: () => (atLeast(process.versions.node, minimumNode) ? process.versions.node : undefined),
    missing: () =>
      `Node ${minimumNode.join('.')} or newer is needed, this is ${process.versions.node}: install it with ` +
      '`curl -fsSL https://deb.nodesource.com/setup_20.x | sudo bash - && sudo apt-get install -y nodejs`, or from https://nodejs.org.',
  },
  compiler: {
    find: (context) =>
      [context.env.CXX, 'c++', 'g++', 'clang++']
        .filter(Boolean)
        .map((name) => capture(context, name, ['--version'])?.split('\n')[0])
        .find(Boolean),
    missing: (context) =>
      'A C++20 compiler is needed and none was found: install one with `' +
      `${install(context, { apt: 'g++', dnf: 'gcc-c++', apk: 'g++', pacman: 'gcc', brew: 'llvm' })}\`.`,
  },
  cmake: {
    find: (context) => {
      const version = capture(context, 'cmake', ['--version'])?.match(/version (\S+)/)?.[1];
      return version && atLeast(version, minimumCmake) ? version : undefined;
    },
    missing: (context) =>
      `CMake ${minimumCmake.join('.')} or newer is needed and was not found: install it with \`` +
      `${install(context, { apt: 'cmake make', dnf: 'cmake make', apk: 'cmake make', pacman: 'cmake make', brew: 'cmake' })}\`.`,
  },
  pip: {
    find: (context) => {
      const text = capture(context, 'python3', ['-m', 'pip', '--version']);
      return text?.replace(/ from .*\(/, ' (');
    },
    missing: (context) =>
      'Python 3 with pip is needed during set-up (never at run time) and was not found: install it with `' +
      `${install(context, { apt: 'python3-pip', dnf: 'python3-pip', apk: 'py3-pip', pacman: 'python-pip', brew: 'python' })}\`.`,
  },
};

/** Throws one SetupError that lists everything missing among `names`. */
export function requirePrerequisites(context, names) {
  const missing = [...new Set(names)]
    .filter((name) => prerequisites[name].find(context) === undefined)
    .map((name) => prerequisites[name].missing(context));
  if (missing.length > 0) throw new SetupError(['Set-up cannot start:', ...missing].join('\n'));
}
