/**
 * libtorch is a folder with include/ and lib/. In this order: BOQ_LIBTORCH, third_party/libtorch/<variant>, a Python
 * that has torch, the pinned wheel of third_party/libtorch.json. The record says which one; the addon is linked to it.
 */
import { existsSync, readFileSync, realpathSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { capture } from './command.js';
import { SetupError } from './error.js';
import { readRecord, writeRecord } from './record.js';
import { fetchWheel, unpackWheel } from './wheels.js';

const oldest = 11;
const newest = 13;
// The Python half of torch, tests and command-line tools are two thirds of the files and of no use here.
const members =
  'torch/include/|torch/lib/(?!libtorch_python|libshm|.*_test\\.|libbackend_with_compiler|libaoti_custom_ops)|' +
  'torch/version\\.py|torch-[^/]*/licenses/(LICENSE|NOTICE)$|nvidia/(?!.*\\.(a|bc)$)|nvidia_[^/]*/(licenses/)?License';

/** Facts about a folder with include/ and lib/, or undefined where it is none. */
export function inspectLibtorch(path) {
  const header = join(path, 'include/torch/headeronly/version.h');
  const older = join(path, 'include/torch/csrc/api/include/torch/version.h');
  const file = [header, older].find((candidate) => existsSync(candidate));
  if (!file || !existsSync(join(path, 'lib/libtorch_cpu.so'))) return undefined;
  const text = readFileSync(file, 'utf8');
  const part = (name) => text.match(new RegExp(`define TORCH_VERSION_${name} (\\d+)`))?.[1];
  const [major, minor, patch] = ['MAJOR', 'MINOR', 'PATCH'].map(part);
  return {
    path: realpathSync(path),
    version: `${major}.${minor}.${patch}`,
    variant: existsSync(join(path, 'lib/libtorch_cuda.so')) ? 'cuda' : 'cpu',
    supported: major === '2' && Number(minor) >= oldest && Number(minor) <= newest,
  };
}

function fromEnvironment(context) {
  const path = context.env.BOQ_LIBTORCH;
  if (!path) return undefined;
  const found = inspectLibtorch(path);
  if (!found)
    throw new SetupError(
      `BOQ_LIBTORCH=${path} is not libtorch: expected include/ and lib/libtorch_cpu.so there; correct it or unset it.`,
    );
  if (!found.supported)
    throw new SetupError(
      `BOQ_LIBTORCH=${path} is libtorch ${found.version}, expected 2.${oldest} to 2.${newest}; correct it or unset it.`,
    );
  return { ...found, source: 'BOQ_LIBTORCH' };
}

function fromFolder(context, variant) {
  const folder = join(context.root, 'third_party/libtorch', variant);
  // An archive from pytorch.org has include/ at once, unpacked wheels have torch/ (with nvidia/ beside it).
  for (const path of [folder, join(folder, 'torch'), join(folder, 'libtorch')]) {
    const found = inspectLibtorch(path);
    if (found?.supported) return { ...found, source: `third_party/libtorch/${variant}` };
  }
  return undefined;
}

function fromPython(context, variant) {
  const code =
    "import importlib.util as u; s = u.find_spec('torch'); print(s.submodule_search_locations[0] if s else '')";
  const path = capture(context, 'python3', ['-c', code]);
  const found = path ? inspectLibtorch(path) : undefined;
  if (!found) return undefined;
  if (!found.supported || found.variant !== variant) {
    context.log(
      `  libtorch: Python's torch is ${found.version} (${found.variant}), not used for variant ${variant}`,
    );
    return undefined;
  }
  return { ...found, source: 'python3' };
}

/** The table's wheels for a variant, each with pip's options; a gap in the table is named. */
function pinnedWheels(context, variant) {
  const own = `set BOQ_LIBTORCH to a libtorch 2.${oldest} to 2.${newest} folder`;
  const file = 'third_party/libtorch.json';
  let table;
  try {
    table = JSON.parse(readFileSync(join(context.root, file), 'utf8'));
  } catch (error) {
    throw new SetupError(`${file} cannot be read (${error.message}): restore it, or ${own}.`);
  }
  const machine = `${process.platform}-${process.arch}`;
  if (machine !== table.machine) {
    throw new SetupError(`No pinned libtorch for ${machine} (only ${table.machine}): ${own}.`);
  }
  const wheels = table.variants?.[variant]?.wheels ?? [];
  if (wheels.length === 0) {
    throw new SetupError(
      `${file} names no wheels for the variant '${variant}': ${own}, or choose another --variant.`,
    );
  }
  for (const [index, wheel] of wheels.entries()) {
    const missing = ['requirement', 'file', 'sha256'].filter((key) => !wheel[key]);
    if (missing.length > 0) {
      throw new SetupError(
        `${file}: wheel ${index} of '${variant}' has no ${missing.join(', ')}: complete it, or ${own}.`,
      );
    }
  }
  return wheels.map((wheel) => ({ ...wheel, target: wheel.target ?? table.target }));
}

async function fromWheels(context, variant) {
  const pinned = pinnedWheels(context, variant);
  const folder = join(context.root, 'third_party/libtorch', variant);
  const fresh = `${folder}.tmp`;
  const wheels = [];
  for (const wheel of pinned) wheels.push(await fetchWheel(context, 'libtorch', wheel));
  context.log('  libtorch: unpacking');
  rmSync(fresh, { recursive: true, force: true });
  for (const path of wheels) await unpackWheel(context, 'libtorch', path, fresh, members);
  rmSync(folder, { recursive: true, force: true });
  renameSync(fresh, folder);
  for (const path of wheels) rmSync(path);
  const found = fromFolder(context, variant);
  if (!found)
    throw new SetupError(
      `The wheels unpacked to ${folder} hold no supported libtorch; remove the folder and run set-up again.`,
    );
  return { ...found, source: pinned[0].requirement };
}

export const libtorch = {
  name: 'libtorch',
  title: 'libtorch',
  needs: ['pip'],
  isComplete(context) {
    const record = readRecord(context, 'libtorch');
    if (!record || !existsSync(join(record.path, 'lib/libtorch_cpu.so'))) return false;
    if (context.env.BOQ_LIBTORCH) {
      return existsSync(context.env.BOQ_LIBTORCH) && realpathSync(context.env.BOQ_LIBTORCH) === record.path;
    }
    return context.variant === undefined || context.variant === record.variant;
  },
  async run(context) {
    const automatic = () => (capture(context, 'nvidia-smi', ['-L']) ? 'cuda' : 'cpu');
    const variant = context.variant ?? automatic();
    const found =
      fromEnvironment(context) ??
      fromFolder(context, variant) ??
      fromPython(context, variant) ??
      (await fromWheels(context, variant));
    context.log(`  libtorch: ${found.version} (${found.variant}) from ${found.source}`);
    writeRecord(context, 'libtorch', found);
    if (context.variant) writeRecord(context, 'variant', { variant: context.variant });
  },
};
