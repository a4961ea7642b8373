/**
 * A baseline that could embarrass the Q-function: the page policy with its own weights fitted to the same episodes, by
 * filtered behavioural cloning or advantage-weighted regression. The policy's thoughts say which facts hold for a
 * candidate, and its score is the sum of their weights: a conditional logit over the candidates of each step. `page`
 * itself is not touched: a refitted policy is another policy, with another name.
 */
import { PagePolicy } from '../agent/policy/page.js';
import { factsOf } from '../agent/policy/weights.js';
import type { FolderRun } from '../store/run.js';
import type { StepRecord } from '../store/types.js';

/** `filtered`: clones the steps of successful episodes. `advantage`: all steps, by the exponent of their advantage. */
export const refitMethods = ['filtered', 'advantage'] as const;
export type RefitMethod = (typeof refitMethods)[number];

/** One step: the facts of each candidate, which one was taken, and how much that counts. */
export interface RefitStep {
  candidates: readonly (readonly string[])[];
  chosen: number;
  weight: number;
}

export interface RefitOptions {
  /** Strength of the pull towards 0. Default 1e-3. */
  decay?: number;
  /** Default 400. */
  iterations?: number;
}

/** Weights by fact: the maximum of the weighted log likelihood, by Adam on the whole data. */
export function fitWeights(steps: readonly RefitStep[], options: RefitOptions = {}): Record<string, number> {
  const { decay = 1e-3, iterations = 400 } = options;
  const names = [...new Set(steps.flatMap(({ candidates }) => candidates.flat()))].sort();
  const place = new Map(names.map((name, index) => [name, index]));
  const data = steps.map(({ candidates, chosen, weight }) => ({
    facts: candidates.map((facts) => facts.map((fact) => place.get(fact)!)),
    ...{ chosen, weight },
  }));
  const all = data.reduce((sum, { weight }) => sum + weight, 0);
  const weights = new Float64Array(names.length);
  const [first, second] = [new Float64Array(names.length), new Float64Array(names.length)];
  for (let iteration = 1; iteration <= iterations; iteration++) {
    const gradient = weights.map((value) => decay * value);
    for (const { facts, chosen, weight } of data) {
      const scores = facts.map((own) => own.reduce((sum, fact) => sum + weights[fact]!, 0));
      const top = Math.max(...scores);
      const shares = scores.map((score) => Math.exp(score - top));
      const total = shares.reduce((sum, share) => sum + share, 0);
      facts.forEach((own, index) => {
        const error = (shares[index]! / total - Number(index === chosen)) * (weight / all);
        for (const fact of own) gradient[fact]! += error;
      });
    }
    for (let index = 0; index < weights.length; index++) {
      first[index] = 0.9 * first[index]! + 0.1 * gradient[index]!;
      second[index] = 0.999 * second[index]! + 0.001 * gradient[index]! ** 2;
      const mean = first[index]! / (1 - 0.9 ** iteration);
      const scale = Math.sqrt(second[index]! / (1 - 0.999 ** iteration)) + 1e-8;
      weights[index]! -= (0.05 * mean) / scale;
    }
  }
  return Object.fromEntries(names.map((name, index) => [name, weights[index]!]));
}

const gamma = 0.99;
/** Of the exponent; advantages lie between -1 and 1. */
const temperature = 0.2;
const largestWeight = 20;

/** The steps of some runs, weighted by the method. */
export async function refitSteps(runs: readonly FolderRun[], method: RefitMethod): Promise<RefitStep[]> {
  const episodes: { task: string; success: boolean; steps: StepRecord[] }[] = [];
  for (const run of runs) {
    for await (const { record, steps } of run.episodes())
      episodes.push({ task: record.key.task, success: record.reward > 0, steps });
  }
  const baseline = new Map<string, { sum: number; count: number }>();
  const returnAt = (success: boolean, count: number, index: number): number =>
    success ? gamma ** (count - 1 - index) : 0;
  for (const { task, success, steps } of episodes) {
    const known = baseline.get(task) ?? { sum: 0, count: 0 };
    steps.forEach((_, index) => {
      known.sum += returnAt(success, steps.length, index);
      known.count++;
    });
    baseline.set(task, known);
  }
  return episodes.flatMap(({ task, success, steps }) => {
    const { sum, count } = baseline.get(task)!;
    return steps.map(({ candidates, selection }, index): RefitStep => {
      const advantage = returnAt(success, steps.length, index) - sum / count;
      const weight =
        method === 'filtered' ? Number(success) : Math.min(largestWeight, Math.exp(advantage / temperature));
      return {
        candidates: candidates.map(({ thought }) => factsOf(thought)),
        chosen: selection.index,
        weight,
      };
    });
  });
}

/** The page policy with weights fitted to runs that it collected. */
export async function refitPolicy(
  runs: readonly FolderRun[],
  method: RefitMethod,
  options?: RefitOptions,
): Promise<PagePolicy> {
  const steps = (await refitSteps(runs, method)).filter(({ weight }) => weight > 0);
  return new PagePolicy({ refit: { name: method, weights: fitWeights(steps, options) } });
}
