/** What a loop is asked to do: the plan, the paper's numbers for it, and loop.json, which keeps it. */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createMethod, isMarginOpen, parseMethodSpec } from '../../agent/methods/registry.js';
import { BoqError } from '../../core/errors.js';
import type { Preset } from '../../learning/hyper-parameters.js';
import type { NativeTrainConfig } from '../../native/surface.js';
import { createIfAbsent } from '../../store/publish.js';
import type { PolicyChoice, SeedRange } from '../stage.js';

/** What is done. Numbers are the paper's where it names them. */
export interface LoopPlan extends PolicyChoice {
  benchmark: string;
  tasks: string[];
  /** Who finds the elements that actions name. */
  localizer: string;
  /** Episode seeds of the first run; each later run takes the next ones, unless `sameSeeds`. */
  seeds: SeedRange;
  /** Every run plays the same seeds, as the paper's runs play the same tasks. */
  sameSeeds: boolean;
  repeats: number;
  /** Candidates a step, by run in turn: several train on mixed N. */
  n: number[];
  maxSteps: number | null;
  /** Runs before the first training, and how they choose. */
  explore: { runs: number; selector: string };
  /** Cycles after it, the runs of each, and how they choose; a margin `auto` is chosen on validation seeds. */
  cycles: number;
  exploit: { runs: number; selector: string };
  /** Share of the tasks that a cycle plays, those the model is least sure of, on the more seeds; 1: all of them. */
  curriculum: number;
  /** Each training starts from the model before it, and not from new weights. */
  warmStart: boolean;
  preset: Preset;
  config: NativeTrainConfig;
  validation: { tasks: string[]; seeds: SeedRange; repeats: number };
  /** Seed of all draws; run k has seed + k. */
  seed: number;
}

/** The paper's numbers (A.2), without what only the user can say. */
export const paperLoop = {
  localizer: 'page',
  sameSeeds: false,
  repeats: 1,
  n: [3],
  maxSteps: null,
  explore: { runs: 5, selector: 'epsilon-greedy@epsilon=0.5' },
  cycles: 4,
  exploit: { runs: 2, selector: 'best-of-q' },
  curriculum: 1,
  warmStart: false,
  preset: 'default',
  config: {},
  seed: 0,
} as const satisfies Partial<Record<keyof LoopPlan, unknown>>;

/** @throws BoqError BOQ_USAGE where the plan cannot be carried out, or would validate on seeds that it trains on */
export function requireSensible(plan: LoopPlan): void {
  const { n, seeds, explore, exploit, cycles, curriculum, validation, tasks } = plan;
  const refuse = (what: string): never => {
    throw new BoqError('BOQ_USAGE', what);
  };
  if (explore.runs < 1 || cycles < 0 || (cycles > 0 && exploit.runs < 1))
    refuse('Expected at least one exploring run, and at least one run a cycle.');
  if (n.length === 0 || n.some((count) => !(Number.isInteger(count) && count >= 1)))
    refuse(`Expected numbers of candidates of at least 1, got ${n.join(', ') || 'none'}.`);
  for (const { selector } of [explore, exploit]) {
    const spec = parseMethodSpec(selector);
    if (!isMarginOpen(spec)) createMethod(spec);
  }
  if (!(curriculum > 0 && curriculum <= 1))
    refuse(`Expected a share of the tasks above 0 and at most 1 for the curriculum, got ${curriculum}.`);
  if (tasks.length === 0) refuse('Expected at least one task.');
  const { from, to } = validation.seeds;
  const runs = explore.runs + cycles * exploit.runs;
  const last = seeds.from + runs * seedsBetweenRuns(plan) - 1;
  if (seeds.from <= to && from <= last) {
    refuse(
      `Expected validation seeds apart from those of training, got ${from}-${to} and up to ${seeds.from}-${last} ` +
        `over ${runs} runs: a model chosen on seeds that it trained on flatters itself.`,
    );
  }
}

/** How far the first seeds of neighbouring runs lie apart: as many as a run of the fewest tasks takes. */
export function seedsBetweenRuns({ seeds, curriculum }: Pick<LoopPlan, 'seeds' | 'curriculum'>): number {
  return Math.round((seeds.to - seeds.from + 1) / curriculum);
}

/** What may differ when a loop goes on: it changes how far it goes, not what has been done. */
const extendable: ReadonlySet<string> = new Set(['cycles']);

/**
 * Writes the plan of a loop that begins; one that goes on must have the same, but may have more cycles.
 * @param out the loop's folder, which exists
 * @throws BoqError BOQ_RUN_EXISTS where an option differs; BOQ_RUN_INVALID; BOQ_FILE_WRITE
 */
export async function requireSamePlan(out: string, plan: LoopPlan): Promise<void> {
  const file = join(out, 'loop.json');
  const created = await createIfAbsent(file, `${JSON.stringify({ version: 1, plan }, null, 2)}\n`);
  if (created) return;
  const found = await readPlan(out);
  for (const [name, value] of Object.entries(plan)) {
    const before = JSON.stringify(found[name as keyof LoopPlan] ?? null);
    const now = JSON.stringify(value ?? null);
    if (extendable.has(name) || now === before) continue;
    throw new BoqError(
      'BOQ_RUN_EXISTS',
      `Expected to continue the loop in ${out}, but it was started with ${name} = ${before} and now ${name} = ` +
        `${now}: use the same options, or another --out.`,
      { details: { folder: out, option: name, before, now } },
    );
  }
}

async function readPlan(out: string): Promise<LoopPlan> {
  const file = join(out, 'loop.json');
  try {
    const { version, plan } = JSON.parse(await readFile(file, 'utf8')) as { version: number; plan: LoopPlan };
    if (version === 1 && Array.isArray(plan.tasks)) return plan;
  } catch {
    // Told below, with the path.
  }
  throw new BoqError('BOQ_RUN_INVALID', `Expected a loop's plan of version 1 in ${file}: use another --out.`);
}
