/** A model that judges candidates, against a real server. */
import { expect } from 'chai';
import sharp from 'sharp';
import { pickerSelector } from '../../ts/agent/selectors/picker.js';
import { vlmPicker } from '../../ts/agent/selectors/vlm-picker.js';
import type { SelectRequest } from '../../ts/agent/types.js';
import { openClient } from '../../ts/agent/vlm/index.js';
import { isBoqError } from '../../ts/core/errors.js';
import { randomSource } from '../../ts/core/random.js';
import { endpointForEachTest, imagesOf, type Reply, textOf } from '../support/endpoint-server.js';

async function choice(changes: Partial<SelectRequest> = {}): Promise<SelectRequest> {
  const bytes = await sharp({ create: { width: 40, height: 30, channels: 3, background: '#fff' } })
    .png()
    .toBuffer();
  return {
    instruction: 'Buy the lamp',
    candidates: ['Buy', 'Cancel', 'Help'].map((name) => ({
      action: { type: 'click', element: `button "${name}"` },
      thought: `${name} seems right`,
      note: '',
    })),
    scores: null,
    random: randomSource(['choice']),
    history: [
      {
        action: { type: 'write', element: 'textbox "Search"', text: 'lamp' },
        thought: 'search first',
        note: 'the blue one costs 20',
        result: { ok: true, message: 'wrote "lamp"' },
      },
    ],
    screenshot: { bytes, format: 'png', width: 40, height: 30 },
    ...changes,
  };
}

describe('VLM picker', () => {
  const server = endpointForEachTest();

  const picker = () =>
    vlmPicker(
      openClient('picker', {
        options: { endpoint: server.url, model: 'judge', attempts: 1 },
        environment: {},
      }),
    );

  async function select(replies: Reply[], changes: Partial<SelectRequest> = {}) {
    server.script = replies;
    return pickerSelector(picker()).select(await choice(changes));
  }

  it('reads the conversation, sees the page, and names one with its reason', async () => {
    const decision = await select([{ pieces: ['{"reason": "it buys the lamp", "choice": 1}'] }]);
    expect(decision).to.deep.equal({
      selector: 'picker@by=judge, prompt v1',
      index: 0,
      reason: 'it buys the lamp',
      usage: [{ purpose: 'picker', model: 'judge', inputTokens: 100, outputTokens: 10 }],
    });
    const { body } = server.requests[0]!;
    const text = textOf(body);
    for (const words of [
      'Buy the lamp',
      'the blue one costs 20',
      'wrote "lamp"',
      '1. click element: button "Buy"; thought: Buy seems right',
      '3. click element: button "Help"',
    ]) {
      expect(text).to.include(words);
    }
    expect(imagesOf(body)).to.have.length(1);
    expect(body).to.deep.include({ temperature: 0 });
    expect(body.response_format!.json_schema!.strict).to.equal(true);
  });

  it('asks again for a number that is none', async () => {
    const decision = await select([
      { pieces: ['I like the second one best.'] },
      { pieces: ['```json\n{"choice": "2", "reason": "undo"}\n```'] },
    ]);
    expect(decision).to.include({ index: 1, reason: 'undo' });
    expect(decision.usage).to.have.length(2);
    expect(textOf(server.requests[1]!.body)).to.include('I like the second').and.include('1 to 3');
  });

  it('takes the first after two answers without a candidate, and says so', async () => {
    const decision = await select([{ pieces: ['{"choice": 4}'] }, { refusal: 'no' }]);
    expect(decision.index).to.equal(0);
    expect(decision.reason).to.include('refused: no').and.include('the first is taken');
  });

  it('asks nobody about a single candidate', async () => {
    const [only] = (await choice()).candidates;
    await select([], { candidates: [only!] });
    expect(server.requests).to.have.length(0);
  });

  it('leaves out old steps where the context overflows', async () => {
    const [entry] = (await choice()).history;
    const history = Array.from({ length: 20 }, () => entry!);
    const tooLong = { status: 400, body: { error: { message: 'maximum context length' } } };
    await select([tooLong, { pieces: ['{"reason": "", "choice": 2}'] }], { history });
    const text = textOf(server.requests[1]!.body);
    expect(text)
      .to.match(/^9\. write/m)
      .and.not.match(/^8\. write/m);
  });

  it('fails where the model cannot be asked', async () => {
    const error = await select([{ status: 401, body: {} }]).then(
      () => null,
      (reason: unknown) => reason,
    );
    expect(error).to.satisfy((reason: unknown) => isBoqError(reason, 'BOQ_VLM_KEY'));
  });
});
