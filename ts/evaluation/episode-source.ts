/** Episodes of a benchmark, each in a session of a shared browser. */
import type { BrowserPool } from '../agent/browser/pool.js';
import type { Benchmark } from './benchmarks/types.js';
import type { EpisodeSource } from './runner.js';

export function benchmarkEpisodes(benchmark: Benchmark, pool: BrowserPool): EpisodeSource {
  return {
    use: (task, seed, work, { fresh, signal }) =>
      pool.use(async (session) => {
        const open = () => benchmark.openEpisode(session, task, seed, signal);
        return work(await open(), open);
      }, fresh),
  };
}
