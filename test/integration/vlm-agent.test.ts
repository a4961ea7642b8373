/** The agent with a model as policy: a scripted endpoint, a real browser, a trained Q-function; and its bill. */
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { expect } from 'chai';
import {
  type AgentOptions,
  Budget,
  Embedder,
  embedRun,
  ModelSet,
  openRun,
  openRunSource,
  previewAgent,
  runAgent,
  type StepRecord,
  train,
} from '../../ts/index.js';
import { tinyCheckpoint } from '../support/checkpoint.js';
import { EndpointServer, imagesOf } from '../support/endpoint-server.js';
import { packageRoot } from '../support/native.js';
import { shopper } from '../support/shopper.js';

const apiKey = 'key-0123456789abcdef';

describe('agent with a VLM', () => {
  let folder: string;
  let server: EndpointServer;
  let url: string;

  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'boq-vlm-agent-'));
    server = new EndpointServer();
    url = await server.start();
    server.otherwise = shopper;
  });
  after(async () => {
    await server.stop();
    await rm(folder, { recursive: true });
  });
  beforeEach(() => {
    server.requests.length = 0;
  });

  const task = (): Omit<AgentOptions, 'out'> => ({
    url: pathToFileURL(join(packageRoot, 'examples', 'pages', 'tea-shop.html')).href,
    task: 'Select Green tea and Lemon, enter "Ada" into the field Name, and click Order.',
    successText: 'Thank you, Ada: Green tea, Lemon.',
    policy: 'vlm',
    vlm: { options: { endpoint: url, model: 'gpt-4.1-scripted', apiKey }, environment: {} },
    maxSteps: 8,
  });

  async function stepsOf(run: string): Promise<StepRecord[]> {
    for await (const { steps } of (await openRun(run)).episodes()) return steps;
    throw new Error('no episode');
  }

  it('does a task, is trained on, and then chosen for by best-of-q', async () => {
    const first = join(folder, 'random');
    const { record } = await runAgent({ ...task(), selector: 'random', out: first });
    expect(record).to.include({ outcome: 'success', steps: 4 });
    expect(server.requests).to.have.length(4);
    // The third step shows the pages before it as well.
    expect(server.requests.map(({ body }) => imagesOf(body).length)).to.deep.equal([1, 2, 3, 3]);

    // Training needs an episode that failed: one that is given two steps.
    const second = join(folder, 'short');
    const short = await runAgent({ ...task(), maxSteps: 2, selector: 'random', out: second });
    expect(short.record).to.include({ outcome: 'step-limit', reward: 0 });

    const checkpoint = await tinyCheckpoint();
    await using embedder = await Embedder.load({ path: checkpoint });
    for (const run of [first, second]) await embedRun(await openRunSource(run), embedder);
    const model = join(folder, 'q');
    const config = { steps: 20, projection: 8, hidden: [8], validationFraction: 0, batchSize: 4 };
    await train({ data: [first, second], out: model, config });

    server.requests.length = 0;
    const budget = new Budget({ maxUsd: 1 });
    const out = join(folder, 'best-of-q');
    await using models = new ModelSet({ embedder: checkpoint });
    const best = await runAgent({
      ...task(),
      ...{ selector: 'best-of-q', model: await models.open(model), out, budget },
    });
    expect(best.record).to.include({ outcome: 'success', steps: 4, reward: 1 });
    expect(best.record.key.policy).to.equal('vlm gpt-4.1-scripted (prompt v1, T=0.7)');
    const steps = await stepsOf(out);
    expect(steps.map(({ candidates }) => candidates.length)).to.deep.equal([3, 2, 1, 1]);
    for (const { candidates, scores, selection, usage, candidateErrors } of steps) {
      expect(candidateErrors).to.deep.equal([]);
      expect(scores!.q).to.have.length(candidates.length);
      expect(selection.selector).to.equal('best-of-q');
      expect(scores!.q[selection.index]).to.be.closeTo(Math.max(...scores!.q), 1e-6);
      expect(usage.filter(({ purpose }) => purpose !== 'embedder')).to.deep.equal([
        { purpose: 'policy', model: 'gpt-4.1-scripted', inputTokens: 1000, outputTokens: 50 },
      ]);
    }
    // Four calls at 2 and 8 dollars a million tokens.
    expect(budget.spent).to.deep.include({ calls: 4, tokens: 4200 });
    expect(budget.spent.usd).to.be.closeTo(4 * (1000 * 2e-6 + 50 * 8e-6), 1e-12);
  });

  it('writes the key nowhere', async () => {
    for (const entry of await readdir(folder, { recursive: true, withFileTypes: true })) {
      if (!entry.isFile()) continue;
      const content = await readFile(join(entry.parentPath, entry.name));
      expect(content.includes(apiKey), entry.name).to.equal(false);
    }
    expect(server.requests).to.deep.equal([]);
  });

  it('shows what it would send, and sends nothing', async () => {
    const { prompt, candidates } = await previewAgent(task());
    expect(prompt).to.include('To gpt-4.1-scripted at http://127.0.0.1').and.include('checkbox "Lemon"');
    expect(prompt).to.include('[screenshot 1280x720]').and.not.include(apiKey);
    expect(candidates).to.deep.equal([]);
    expect(server.requests).to.deep.equal([]);
  });

  it('lets a picker choose and a localizer point, each with its own model', async () => {
    const judge = new EndpointServer();
    const finder = new EndpointServer();
    judge.otherwise = { pieces: ['{"reason": "the last is as good", "choice": 2}'] };
    finder.otherwise = { pieces: ['nowhere to be seen'] };
    const options = { endpoint: await judge.start(), model: 'judge' };
    const localizer = { endpoint: await finder.start(), model: 'finder' };
    try {
      const { options: policy } = task().vlm!;
      const out = join(folder, 'picker');
      const { record } = await runAgent({
        ...task(),
        vlm: { file: { ...policy, picker: options, localizer }, environment: {} },
        selector: 'vlm-picker',
        localizer: 'holo1.5,page',
        out,
      });
      expect(record).to.include({ outcome: 'success', steps: 4 });
      const steps = await stepsOf(out);
      // Nobody is asked about a single candidate.
      expect(steps.map(({ selection }) => selection.index)).to.deep.equal([1, 1, 0, 0]);
      expect(
        steps.map(({ usage }) => usage.map(({ purpose, model }) => `${purpose} ${model}`)),
      ).to.deep.equal([
        ['policy gpt-4.1-scripted', 'picker judge', 'localizer finder'],
        ['policy gpt-4.1-scripted', 'picker judge', 'localizer finder'],
        ['policy gpt-4.1-scripted', 'localizer finder'],
        ['policy gpt-4.1-scripted', 'localizer finder'],
      ]);
      expect(steps[0]!.grounding!.localizer).to.equal('holo1.5 finder, else page');
      expect(judge.requests.every(({ authorization }) => authorization === undefined)).to.equal(true);
    } finally {
      await judge.stop();
      await finder.stop();
    }
  });

  it('ends with the right error where the key is wrong, and leaves no episode', async () => {
    server.script = [{ status: 401, body: { error: { message: `wrong key ${apiKey}` } } }];
    const out = join(folder, 'refused');
    const error = await runAgent({ ...task(), selector: 'first', out }).then(
      () => null,
      (reason: unknown) => reason as { code: string; message: string },
    );
    expect(error).to.have.property('code', 'BOQ_VLM_KEY');
    expect(error!.message).to.include('[secret]');
    expect(await (await openRun(out)).committed()).to.have.property('size', 0);
  });
});
