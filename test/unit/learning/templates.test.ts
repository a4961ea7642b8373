import { expect } from 'chai';
import {
  actionPrompt,
  describeAction,
  droppedSteps,
  image,
  type PastStep,
  type Piece,
  renderChat,
  statePrompt,
  taskPrompt,
} from '../../../ts/learning/templates.js';

const flat = (pieces: readonly Piece[]): string =>
  pieces.map((piece) => (typeof piece === 'string' ? piece : piece.control)).join('');

const past = (index: number): PastStep => ({
  action: { type: 'click', element: `button "${index}"` },
  thought: 'named in the task',
  note: '',
  result: { ok: true, message: `clicked button "${index}"` },
});

describe('templates', () => {
  it('frame turns as the VL models do, with their default system turn', () => {
    const pieces = renderChat([{ role: 'user', content: [image, 'Find flights.'] }], {
      generationPrompt: true,
    });
    expect(flat(pieces)).to.equal(
      '<|im_start|>system\nYou are a helpful assistant.<|im_end|>\n' +
        '<|im_start|>user\n<|vision_start|><|image_pad|><|vision_end|>Find flights.<|im_end|>\n' +
        '<|im_start|>assistant\n',
    );
    expect(flat(renderChat([{ role: 'system', content: ['Be brief.'] }]))).to.equal(
      '<|im_start|>system\nBe brief.<|im_end|>\n',
    );
  });

  it('join neighbouring texts, so that the tokenizer sees role and content as one', () => {
    const pieces = renderChat([{ role: 'user', content: ['a', 'b', image, 'c'] }]);
    const texts = pieces.filter((piece) => typeof piece === 'string');
    expect(texts).to.deep.equal(['system\nYou are a helpful assistant.', '\n', 'user\nab', 'c', '\n']);
  });

  it('write an action with sorted arguments, its thought and its note', () => {
    const candidate = {
      action: { type: 'write', text: 'Anna\n  Maria', submit: true, element: 'textbox "Name"' },
      thought: 'an empty field named in the task',
      note: '',
    };
    expect(flat(actionPrompt(candidate))).to.contain(
      'user\nAction: write element: textbox "Name", submit: true, text: Anna Maria\n' +
        'Thought: an empty field named in the task<|im_end|>',
    );
    const reordered = {
      ...candidate,
      action: { element: 'textbox "Name"', submit: true, text: 'Anna Maria', type: 'write' },
    };
    expect(actionPrompt(reordered)).to.deep.equal(actionPrompt(candidate));
    expect(describeAction({ type: 'go_back' })).to.equal('go_back');
  });

  it('may leave out what an action names, so that only its type, thought and note are read', () => {
    const named = (name: string) => ({
      action: { type: 'click', element: name },
      thought: 'named in the task',
      note: 'n',
    });
    const text = flat(actionPrompt(named('button "Anna"'), 'thought'));
    expect(text).to.contain('user\nAction: click\nThought: named in the task\nNote: n<|im_end|>');
    expect(actionPrompt(named('link "Other"'), 'thought')).to.deep.equal(
      actionPrompt(named('button "Anna"'), 'thought'),
    );
  });

  it('write a state as task, history and screenshot, in that order', () => {
    const failed: PastStep = {
      ...past(2),
      note: 'price 12',
      result: { ok: false, message: 'no such button' },
    };
    expect(flat(statePrompt({ instruction: ' Click 1, then 2. ', history: [past(1), failed] }))).to.contain(
      'user\nTask: Click 1, then 2.\n\nSteps so far:\n' +
        '1. click element: button "1"; thought: named in the task; result: clicked button "1"\n' +
        '2. click element: button "2"; thought: named in the task; note: price 12; result: failed, no such button\n' +
        '\nScreen now:\n<|vision_start|><|image_pad|><|vision_end|><|im_end|>',
    );
    expect(flat(taskPrompt('Click 1.'))).to.contain('user\nTask: Click 1.<|im_end|>');
  });

  it('keep the state of one step a prefix of the next, and drop old steps in whole blocks', () => {
    const head = (count: number): string => {
      const history = Array.from({ length: count }, (_, index) => past(index));
      const text = flat(statePrompt({ instruction: 'Do it.', history }));
      return text.slice(0, text.indexOf('\nScreen now:'));
    };
    for (const count of [1, 23, 25, 31, 33])
      expect(head(count + 1).startsWith(head(count)), `${count}`).to.equal(true);
    expect([24, 25, 32, 33].map(droppedSteps)).to.deep.equal([0, 8, 8, 16]);
    expect(head(25)).to.contain('(the first 8 are left out)\n9. click');
    expect(head(24)).not.to.contain('left out');
  });

  it('replace half characters and shorten endless fields', () => {
    const text = flat(
      actionPrompt({ action: { type: 'click', element: 'a\ud83d' }, thought: 'x'.repeat(5000), note: '' }),
    );
    expect(text)
      .to.contain('element: a\ufffd\n')
      .and.to.contain(`${'x'.repeat(2000)}…`);
    expect(text).not.to.contain('x'.repeat(2001));
  });
});
