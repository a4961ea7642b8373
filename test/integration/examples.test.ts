/** Every example, run as a user runs it: by plain Node, against the built package, in a folder of its own. */
import { execFile } from 'node:child_process';
import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect } from 'chai';
import sharp from 'sharp';
import { collect, Embedder, embedRun, openRun, openRunSource, train } from '../../ts/index.js';
import { tinyCheckpoint } from '../support/checkpoint.js';
import { EndpointServer } from '../support/endpoint-server.js';
import { packageRoot } from '../support/native.js';
import { shopper } from '../support/shopper.js';

const run = promisify(execFile);

describe('examples', () => {
  let folder: string;
  let checkpoint: string;
  let model: string;
  let picture: string;
  const ran = new Set<string>();

  async function example(name: string, ...args: string[]): Promise<string> {
    ran.add(name);
    const { stdout } = await run(process.execPath, [join(packageRoot, 'examples', name), ...args], {
      cwd: folder,
    });
    return stdout;
  }

  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'boq-examples-'));
    checkpoint = await tinyCheckpoint();
    picture = join(folder, 'screen.png');
    await sharp({ create: { width: 320, height: 240, channels: 3, background: '#e8f5e9' } }).toFile(picture);
    const data = join(folder, 'runs', 'data');
    const seeds = { from: 0, to: 2 };
    await collect({ benchmark: 'miniwob', tasks: ['click-button', 'click-checkboxes'], seeds, out: data });
    await using embedder = await Embedder.load({ path: checkpoint });
    await embedRun(await openRunSource(data), embedder);
    model = join(folder, 'models', 'q');
    const config = { steps: 20, projection: 8, hidden: [8], validationFraction: 0 };
    await train({ data: [data], out: model, config });
  });
  after(() => rm(folder, { recursive: true, force: true }));

  it('embed.js: a vector of the text and one of the screenshot', async () => {
    const [first, second] = (await example('embed.js', picture, checkpoint)).split('\n');
    expect(first).to.match(/^2 vectors of 128, from \d+ and \d+ tokens$/);
    const values = second!.match(/-?\d+\.\d+/g);
    expect(values).to.have.length(2);
    expect(values![0]).to.not.equal(values![1]);
  });

  it('score.js: a value for each of three candidates, and one for the state', async () => {
    const lines = (await example('score.js', picture, model, checkpoint)).trim().split('\n');
    expect(lines).to.have.length(4);
    for (const line of lines) expect(line).to.match(/^[QV] -?\d+\.\d{4} {2}\S/);
  });

  it('agent.js: the agent plays to an end, and its run holds scores for every step', async () => {
    const output = await example('agent.js', model, checkpoint);
    expect(output).to.match(/(success|step-limit|answered) after \d+ steps/);
    const recorded = await openRun(join(folder, 'runs', 'example-agent'));
    for await (const record of recorded.records()) {
      const steps = await recorded.steps(record);
      expect(steps).to.have.length(record.steps);
      for (const { candidates, scores, selection } of steps) {
        expect(scores?.q).to.have.length(candidates.length);
        expect(selection.selector).to.equal('best-of-q@margin=0.1');
      }
    }
  });

  it('events.js: what was offered and what was done, step by step, to the end', async () => {
    const lines = (await example('events.js')).trim().split('\n');
    expect(lines[0]).to.match(/^3 candidates: /);
    expect(lines[1]).to.match(/^ {2}\S/);
    expect(lines.at(-1)).to.match(/^success after \d+ steps$/);
  });

  it('custom-picker.js: the picker chose at every step', async () => {
    expect(await example('custom-picker.js')).to.match(/after \d+ steps with picker@by=shortest/);
    const recorded = await openRun(join(folder, 'runs', 'example-picker'));
    for await (const { steps } of recorded.episodes()) {
      for (const { selection } of steps) expect(selection.reason).to.include('shortest');
    }
  });

  it('custom-selector.js: the order is placed', async () => {
    expect(await example('custom-selector.js')).to.include('success with untried');
  });

  it('custom-proposer.js: scrolling is offered at every step, and the order is placed', async () => {
    const lines = (await example('custom-proposer.js')).trim().split('\n');
    expect(lines.pop()).to.equal('success with page+scroll');
    for (const line of lines) expect(line).to.match(/, scroll$/);
  });

  it('custom-action.js: the action leads to the page', async () => {
    expect(await example('custom-action.js')).to.equal('success after 1 step\n');
  });

  it('vlm.js: a model proposes and another call picks, until the order is placed', async () => {
    const server = new EndpointServer();
    server.otherwise = shopper;
    const before = { ...process.env };
    Object.assign(process.env, { BOQ_VLM_ENDPOINT: await server.start(), BOQ_VLM_MODEL: 'scripted' });
    try {
      // Four proposals, and a pick for the two steps with more than one candidate.
      expect(await example('vlm.js')).to.equal('success after 4 steps, 6 calls, 6300 tokens\n');
      expect(server.requests).to.have.length(6);
    } finally {
      for (const name of ['BOQ_VLM_ENDPOINT', 'BOQ_VLM_MODEL']) {
        if (before[name] === undefined) delete process.env[name];
        else process.env[name] = before[name];
      }
      await server.stop();
    }
  });

  it('leave no example untried', async () => {
    const files = (await readdir(join(packageRoot, 'examples'))).filter((name) => name.endsWith('.js'));
    expect([...ran].sort()).to.deep.equal(files.sort());
  });
});
