/**
 * How long after a model's last token the decision falls, with a simulated endpoint that takes some seconds: the state is
 * embedded while the model thinks, each candidate while the next is written. Beside it the same with everything
 * embedded only once all candidates are there.
 *
 * node --import tsx test/bench/streamed-decision.ts MODEL|random [STEPS] [CHECKPOINT] [BEGINS ENDS]
 *
 * BEGINS and ENDS: seconds until the endpoint begins to answer, and until it has answered; 1.2 and 3.
 * `random` stands for a Q-function of the checkpoint's width that was trained on nothing: as quick as one that was.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import sharp from 'sharp';
import { runEpisode } from '../../ts/agent/loop.js';
import {
  type Critic,
  createSelector,
  Embedder,
  type EpisodeEvent,
  ModelSet,
  type Observation,
  openClient,
  randomSource,
  VlmPolicy,
} from '../../ts/index.js';
import type { Candidate } from '../../ts/store/types.js';
import { EndpointServer } from '../support/endpoint-server.js';
import { FakeEmbedder } from '../support/fake-run.js';
import { embeddedRun, trainedModel } from '../support/trained.js';

const [model, steps = '20', embedder = 'models/tiny', begins = '1.2', ends = '3'] = process.argv.slice(2);
if (model === undefined) throw new Error('usage: streamed-decision.ts MODEL [STEPS] [CHECKPOINT]');
const beginMs = 1000 * Number(begins);
const totalMs = 1000 * Number(ends);

/** A page of text whose numbers differ from step to step, so that no embedding is remembered. */
async function page(step: number): Promise<Observation> {
  const [width, height] = [1280, 720];
  const lines = Array.from(
    { length: 30 },
    (_, i) => `<text x="20" y="${24 * i + 20}">line ${step * 31 + i}</text>`,
  );
  const svg = `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}"><rect width="100%" height="100%" fill="#fff"/>${lines.join('')}</svg>`;
  const bytes = await sharp(Buffer.from(svg)).webp({ quality: 80 }).toBuffer();
  return {
    url: 'http://page.test/',
    title: `step ${step}`,
    viewport: { width, height, deviceScaleFactor: 1 },
    scroll: { x: 0, y: 0, maxX: 0, maxY: 0 },
    screenshot: { bytes, format: 'webp', width, height },
    elements: [],
    tabs: [],
    events: [],
  };
}

/** Three candidates of the length that models write, streamed in tokens of four characters. */
function answer(step: number): string[] {
  const candidates: Candidate[] = [0, 1, 2].map((i) => ({
    thought: `In step ${step} the entry number ${i} looks like the one that the task asks for, so it is opened next.`,
    note: `number ${step * 3 + i} was seen`,
    action: { type: 'click', element: `link "entry ${step * 3 + i}"` },
  }));
  return JSON.stringify({ candidates }).match(/.{1,4}/g)!;
}

/** Keeps everything back until scores are asked for. */
function afterwards(critic: Critic): Critic {
  return {
    begin: (state) => {
      const kept: Candidate[] = [];
      return {
        add: (candidate) => void kept.push(candidate),
        scores: async () => {
          const scoring = critic.begin(state);
          for (const candidate of kept) scoring.add(candidate);
          return scoring.scores();
        },
      };
    },
  };
}

/** Milliseconds from the last token to the decision, one a step. */
async function play(critic: Critic, from: number): Promise<number[]> {
  const server = new EndpointServer();
  let step = from;
  server.otherwise = () => {
    const pieces = answer(step);
    return { pieces, beginMs, pieceMs: (totalMs - beginMs) / (pieces.length - 1) };
  };
  const options = { endpoint: await server.start(), model: 'simulated' };
  const pages = await Promise.all(Array.from({ length: Number(steps) + 1 }, (_, i) => page(from + i)));
  const waits: number[] = [];
  const onEvent = (event: EpisodeEvent): void => {
    if (event.type === 'decided') waits.push(performance.now() - server.lastSent);
  };
  await runEpisode({
    episode: {
      instruction: 'Find the entry that was added last',
      startUrl: 'http://page.test/',
      environment: {
        observe: async () => pages[step - from]!,
        act: async () => {
          step++;
          return { ok: true, message: 'done' };
        },
        verdict: async () => null,
      },
    },
    proposer: new VlmPolicy({ client: openClient('policy', { options, environment: {} }), screenshots: 1 }),
    selector: createSelector('best-of-q'),
    localizer: {
      name: 'anywhere',
      locate: async (element) => ({ found: true, point: { x: 10, y: 10 }, element }),
    },
    critic,
    n: 3,
    limits: { maxSteps: Number(steps), maxMs: Number.POSITIVE_INFINITY },
    random: (index, purpose) => randomSource([index, purpose]),
    recorder: { shot: (name) => name, step: async () => undefined },
    onEvent,
  });
  await server.stop();
  if (step - from !== Number(steps)) throw new Error(`${step - from} of ${steps} actions: no step was new`);
  return waits;
}

function row(name: string, waits: readonly number[]): string {
  // The first step pays for what is loaded once; where there is no other, it counts.
  const sorted = waits.slice(waits.length > 1 ? 1 : 0).sort((a, b) => a - b);
  const at = (share: number): string =>
    sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))]!.toFixed(1);
  return `| ${name} | ${sorted.length} | ${at(0.5)} | ${at(0.9)} | ${at(1)} |`;
}

/** A model folder of the default's shape for this checkpoint, after one step on vectors that mean nothing. */
async function randomModel(folder: string): Promise<string> {
  await using loaded = await Embedder.load({ path: embedder });
  const data = await embeddedRun(folder, new FakeEmbedder(loaded));
  return trainedModel(data, join(folder, 'model'), {
    steps: 1,
    projection: 1024,
    hidden: [1024, 1024, 512, 256, 128, 64],
  });
}

const folder = await mkdtemp(join(tmpdir(), 'boq-streamed-'));
const models = new ModelSet({ embedder });
const { critic } = await models.open(model === 'random' ? await randomModel(folder) : model);
const overlapped = await play(critic, 0);
const kept = await play(afterwards(critic), 1000);
process.stdout.write(
  [
    '| embedding | steps | median, ms | 90 % | longest |',
    '|---|---|---|---|---|',
    row('while the model thinks and writes', overlapped),
    row('once it has written', kept),
    '',
  ].join('\n'),
);
await models.dispose();
await rm(folder, { recursive: true });
