/** Benchmarks by name. */
import { BoqError } from '../../core/errors.js';
import { nearestNames } from '../../core/nearest.js';
import { miniwobFolder } from '../../core/setup-paths.js';
import { Miniwob } from './miniwob.js';
import { Reworded, rewordedSuffix } from './reworded.js';
import type { Benchmark } from './types.js';

const benchmarks: Readonly<Record<string, () => Benchmark>> = {
  miniwob: () => new Miniwob(miniwobFolder),
};

/** Names that openBenchmark knows. */
export const benchmarkNames: readonly string[] = Object.keys(benchmarks);

/**
 * @param name one of {@link benchmarkNames}, or one followed by `+reworded`
 * @throws BOQ_USAGE with the nearest name
 */
export function openBenchmark(name: string): Benchmark {
  if (name.endsWith(rewordedSuffix))
    return new Reworded(openBenchmark(name.slice(0, -rewordedSuffix.length)));
  if (!Object.hasOwn(benchmarks, name)) {
    const [nearest] = nearestNames(name, benchmarkNames);
    throw new BoqError('BOQ_USAGE', `Unknown benchmark "${name}": did you mean ${nearest}?`);
  }
  return benchmarks[name]!();
}
