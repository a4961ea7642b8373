/**
 * The same tasks in other words, as a source of variety for training: a Q-function that met each instruction in one
 * wording only may learn the wording. The page and its judge know nothing of it.
 */
import type { BrowserSession } from '../../agent/browser/session.js';
import type { Episode } from '../../agent/types.js';
import { type RandomSource, randomSource } from '../../core/random.js';
import type { Benchmark } from './types.js';

/** Names what a benchmark in other words is called: `miniwob+reworded`. */
export const rewordedSuffix = '+reworded';

/** What may stand for what, outside of quotation marks; the first of each is what benchmarks tend to say. */
const phrases: readonly (readonly string[])[] = [
  ['click on', 'press', 'choose', 'hit'],
  ['click', 'press', 'tap on', 'hit'],
  ['select', 'choose', 'pick', 'mark'],
  ['enter', 'type', 'write', 'put'],
  ['find', 'look for', 'search for', 'locate'],
  ['expand', 'open', 'unfold'],
  ['navigate to', 'go to', 'move to'],
  ['scroll', 'move'],
  ['reply to', 'answer', 'respond to'],
  ['delete', 'remove', 'throw away'],
  ['forward', 'pass on', 'send on'],
  ['close', 'dismiss', 'shut'],
  ['the email by', 'the message from', 'the mail of'],
  ['into the text field', 'in the input', 'into the box'],
  ['and press', 'and then press', 'and afterwards press'],
  ['and click', 'and then click', 'and afterwards press'],
];

const byFirst = new Map(phrases.map((group) => [group[0]!, group]));
// Longer phrases first, so that "click on" is not taken for "click".
const known = new RegExp(
  `\\b(${[...byFirst.keys()].sort((a, b) => b.length - a.length).join('|')})\\b`,
  'gi',
);

/** Says an instruction in other words. What stands in quotation marks, and whatever has no other words here, stays. */
export function reword(instruction: string, random: RandomSource): string {
  return instruction
    .split(/("[^"]*")/)
    .map((part) => (part.startsWith('"') ? part : part.replace(known, (found) => another(found, random))))
    .join('');
}

function another(found: string, random: RandomSource): string {
  const group = byFirst.get(found.toLowerCase())!;
  const chosen = group[random.below(group.length)]!;
  return /^[A-Z]/.test(found) ? chosen[0]!.toUpperCase() + chosen.slice(1) : chosen;
}

/** A benchmark whose instructions are reworded: each task instance has one wording, the same in every episode. */
export class Reworded implements Benchmark {
  readonly name: string;
  readonly #benchmark: Benchmark;

  constructor(benchmark: Benchmark) {
    this.#benchmark = benchmark;
    this.name = `${benchmark.name}${rewordedSuffix}`;
  }

  get defaults(): Benchmark['defaults'] {
    return this.#benchmark.defaults;
  }

  resolveTasks(spec: readonly string[]): string[] {
    return this.#benchmark.resolveTasks(spec);
  }

  async openEpisode(
    session: BrowserSession,
    task: string,
    seed: number,
    signal?: AbortSignal,
  ): Promise<Episode> {
    const episode = await this.#benchmark.openEpisode(session, task, seed, signal);
    return { ...episode, instruction: reword(episode.instruction, randomSource([task, seed, 'wording'])) };
  }
}
