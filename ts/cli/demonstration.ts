/**
 * What commands work with when they are given nothing: a small set of episodes, embedded, and a Q-function trained
 * on it. Made by the same stages as any other, and made once.
 */
import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import { collect } from '../evaluation/collect.js';
import { ModelSet } from '../evaluation/models.js';
import { chooseModelMargin } from '../evaluation/validation.js';
import { embedRun } from '../learning/embed-run.js';
import { Embedder } from '../learning/embedder.js';
import { openRunSource } from '../learning/run-source.js';
import { train } from '../learning/train.js';
import { findCheckpoint } from './checkpoint.js';
import type { CommandContext } from './command.js';
import { startProgress } from './progress.js';

const episodes = {
  benchmark: 'miniwob',
  tasks: ['@demo-train'],
  seeds: { from: 0, to: 9 },
  repeats: 1,
  policy: 'page',
} as const;
const run = join('runs', 'demonstration');
const model = join('models', 'demonstration');

/** An embedded run of the demonstration tasks. @returns its folder */
export async function demonstrationRun(
  { say, signal }: Pick<CommandContext, 'say' | 'signal'>,
  device = 'auto',
): Promise<string> {
  say(`No embedded run yet: making a small one in ${run} (about two minutes on two cores).`);
  const collecting = startProgress('Collecting', 0);
  try {
    await collect({
      ...episodes,
      out: run,
      signal,
      onProgress: ({ done, total }) => {
        collecting.setTotal(total);
        collecting.update(done);
      },
    });
  } finally {
    collecting.stop();
  }
  await using embedder = await Embedder.load({ path: await findCheckpoint(undefined), device });
  const embedding = startProgress('Embedding', 0);
  try {
    await embedRun(await openRunSource(run), embedder, {
      signal,
      onProgress: ({ steps, totalSteps }) => {
        embedding.setTotal(totalSteps);
        embedding.update(steps);
      },
    });
  } finally {
    embedding.stop();
  }
  return run;
}

/** A model trained on {@link demonstrationRun}, with the margin for its overrides. @returns its folder */
export async function demonstrationModel(
  context: Pick<CommandContext, 'say' | 'signal'>,
  device = 'auto',
): Promise<string> {
  const data = await demonstrationRun(context, device);
  context.say(`Training a small Q-function in ${model}.`);
  const training = startProgress('Training', 0);
  try {
    const isBegun = await stat(join(model, 'checkpoint')).then(
      () => true,
      () => false,
    );
    await train({
      data: [data],
      out: model,
      device,
      resume: isBegun,
      signal: context.signal,
      onProgress: ({ step, steps }) => {
        training.setTotal(steps);
        training.update(step);
      },
    });
  } finally {
    training.stop();
  }
  context.say('Choosing how much better a candidate must be than the first, on other episodes.');
  await using models = new ModelSet({ embedder: await findCheckpoint(undefined), device });
  await chooseModelMargin({
    ...{ benchmark: episodes.benchmark, tasks: episodes.tasks, policy: episodes.policy },
    model: await models.open(model),
    out: join('runs', 'demonstration-validation'),
    validation: { seeds: { from: 10_000, to: 10_001 } },
    signal: context.signal,
  });
  return model;
}
