#!/usr/bin/env node
/** Brings everything the package needs, builds it, and says what is missing. Node built-ins only. */
import { parseArgs } from 'node:util';
import { createContext } from './setup/context.js';
import { SetupError } from './setup/error.js';
import { pendingSteps, setUp } from './setup/index.js';

const help = `usage: node scripts/setup.js [--variant cpu|cuda]

Brings libtorch, the npm packages, a browser and the MiniWoB++ pages, and builds TypeScript and the C++ addon. What is
done already is left alone; an interrupted set-up goes on where it stopped.

  --variant cpu|cuda  which libtorch (default: BOQ_VARIANT; else cuda where nvidia-smi works)
  --help              this text

BOQ_LIBTORCH  a libtorch 2.11 to 2.13 folder (include/, lib/) to use
BOQ_BROWSER   the browser to use
`;

function readArguments() {
  const options = { variant: { type: 'string' }, help: { type: 'boolean', short: 'h' } };
  const { values } = parseArgs({ options, strict: true });
  if (values.variant !== undefined && !['cpu', 'cuda'].includes(values.variant)) {
    throw new TypeError(`--variant is cpu or cuda, not '${values.variant}'`);
  }
  return values;
}

async function main() {
  let values;
  try {
    values = readArguments();
  } catch (error) {
    process.stderr.write(`${error.message}\n\n${help}`);
    return 2;
  }
  if (values.help) {
    process.stdout.write(help);
    return 0;
  }
  const context = createContext({ variant: values.variant });
  if (pendingSteps(context).length === 0) {
    process.stderr.write('set-up is complete\n');
    return 0;
  }
  try {
    await setUp(context);
    return 0;
  } catch (error) {
    if (!(error instanceof SetupError)) throw error;
    process.stderr.write(`${error.message}\n`);
    return 1;
  }
}

process.exitCode = await main();
