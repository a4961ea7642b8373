import { expect } from 'chai';
import { ActionRegistry } from '../../ts/agent/actions/registry.js';
import { readInstruction } from '../../ts/agent/policy/instruction.js';
import { PagePolicy } from '../../ts/agent/policy/page.js';
import type { HistoryEntry, Observation } from '../../ts/agent/types.js';
import { randomSource } from '../../ts/core/random.js';
import type { Action, Candidate } from '../../ts/store/types.js';
import { element, observation } from '../support/page-elements.js';

const did = (action: Action): HistoryEntry => ({
  action,
  thought: '',
  note: '',
  result: { ok: true, message: 'done' },
});

async function propose(
  instruction: string,
  page: Observation,
  { history = [] as HistoryEntry[], n = 3, policy = new PagePolicy(), key = 'k' } = {},
): Promise<Candidate[]> {
  const request = { instruction, history, observation: page, n, random: randomSource([key]) };
  const candidates: Candidate[] = [];
  for await (const event of policy.propose(request)) {
    if (event.type === 'candidate') candidates.push(event.candidate);
  }
  return candidates;
}

async function best(
  instruction: string,
  page: Observation,
  history: HistoryEntry[] = [],
): Promise<Candidate> {
  const [first] = await propose(instruction, page, { history, n: 1 });
  if (!first) throw new Error('no candidate');
  return first;
}

describe('reading an instruction', () => {
  const uses = (text: string) =>
    readInstruction(text).quotations.map((quotation) => `${quotation.text}:${quotation.use}`);

  it('tells what is written from what is looked for', () => {
    expect(uses('Enter the name "kai" and the password "u8" and press "Log in".')).to.deep.equal([
      'kai:write',
      'u8:write',
      'Log in:find',
    ]);
    expect(uses('Click on the "Block" button.')).to.deep.equal(['Block:find']);
    expect(uses('Reply with the text "Fine. Thanks."')).to.deep.equal(['Fine. Thanks.:write']);
    expect(uses('Pick one that starts with "An" and ends with "ica".')).to.deep.equal([
      'An:start',
      'ica:end',
    ]);
  });

  it('finds names, places and directions', () => {
    const read = readInstruction('Open the mail by Audrey and take the 7th one for @kim.');
    expect(read.names).to.deep.equal(['audrey', '@kim']);
    expect(read.place).to.equal(7);
    expect(readInstruction('Scroll to the bottom').scroll).to.equal('down');
    expect(readInstruction('Scroll the box to the top').scroll).to.equal('up');
    expect(readInstruction('Go to the top').scroll).to.equal(null);
  });
});

describe('page policy', () => {
  it('clicks what is quoted, in the right case, and says so', async () => {
    const page = observation([
      element('button', 'ok'),
      element('button', 'OK'),
      element('text', 'some words'),
    ]);
    const candidate = await best('Click on the "OK" button.', page);
    expect(candidate.action).to.deep.equal({ type: 'click', element: 'button "OK"' });
    expect(candidate.thought).to.match(/^quoted in the task/);
    expect(candidate.thought).not.to.contain('OK');
  });

  it('writes each value into the field of its label before it submits', async () => {
    const fields = (name: string, password: string) =>
      observation([
        element('textbox', 'Password', { inputType: 'password', value: password }),
        element('textbox', 'Username', { value: name }),
        element('button', 'Login'),
      ]);
    const task = 'Enter the username "kai" and the password "u8" and press login.';
    const write = (element: string, text: string) => ({ type: 'write', element, text, submit: false });
    expect((await best(task, fields('', ''))).action).to.deep.equal(write('textbox "Password"', 'u8'));
    expect((await best(task, fields('', 'u8'))).action).to.deep.equal(write('textbox "Username"', 'kai'));
    const last = await best(task, fields('kai', 'u8'), [did(write('textbox "Username"', 'kai'))]);
    expect(last.action).to.deep.equal({ type: 'click', element: 'button "Login"' });
    expect(last.thought).to.contain('a submit button with nothing open');
  });

  it('checks what is named, then submits', async () => {
    const page = (checked: boolean) =>
      observation([
        element('checkbox', 'tea'),
        element('checkbox', 'milk', { checked }),
        element('button', 'Submit'),
      ]);
    expect((await best('Select milk and click Submit.', page(false))).action.element).to.equal(
      'checkbox "milk"',
    );
    expect((await best('Select milk and click Submit.', page(true))).action.element).to.equal(
      'button "Submit"',
    );
  });

  it('chooses the option of a native list', async () => {
    const page = observation([
      element('combobox', 'City', { tag: 'select', options: ['York', 'New York'], value: 'York' }),
      element('button', 'Submit'),
    ]);
    const { action } = await best('Select New York from the list and click Submit.', page);
    expect(action).to.deep.include({ type: 'write', element: 'combobox "City"', text: 'New York' });
  });

  it('prefers the button in the row that the task names', async () => {
    const rows = ['Ann: hello', 'Bob: lunch?'].map((context) => element('clickable', 'trash', { context }));
    const { action } = await best('Delete the mail by Bob with the trash icon.', observation(rows));
    expect(action.element).to.equal('clickable "trash" in "Bob: lunch?"');
  });

  it('opens what it has not opened yet while its aim is not shown', async () => {
    const page = observation([
      element('link', 'Tab #1'),
      element('link', 'Tab #2'),
      element('text', 'other words'),
    ]);
    const task = 'Switch between the tabs and click on the link "lorem".';
    expect((await best(task, page)).action.element).to.equal('link "Tab #1"');
    const next = await best(task, page, [did({ type: 'click', element: 'link "Tab #1"' })]);
    expect(next.action.element).to.equal('link "Tab #2"');
  });

  it('scrolls where the task asks and where nothing matches', async () => {
    const page = observation([element('text', 'nothing here')], { maxY: 900 });
    expect((await best('Scroll down to the end.', page)).action).to.deep.equal({
      type: 'scroll',
      direction: 'down',
    });
    expect((await best('Click "Imprint".', page)).action).to.deep.equal({
      type: 'scroll',
      direction: 'down',
    });
  });

  it('offers N different, valid candidates, the same first one for every N', async () => {
    const page = observation([element('button', 'A1'), element('button', 'B2'), element('textbox', 'Name')]);
    const registry = new ActionRegistry();
    const [only] = await propose('Click on B2.', page, { n: 1 });
    for (const key of ['a', 'b', 'c', 'd']) {
      const three = await propose('Click on B2.', page, { n: 3, key });
      expect(three).to.have.length(3);
      expect(three[0]).to.deep.equal(only);
      expect(new Set(three.map(({ action }) => JSON.stringify(action))).size).to.equal(3);
      for (const { action } of three) expect(registry.check(action)).to.equal(null);
    }
    const all = await propose('Click on B2.', page, { n: 500 });
    expect(all.length).to.be.within(5, 50);
  });

  it('depends on the random source alone when it samples', async () => {
    const page = observation(['A1', 'B2', 'C3', 'D4'].map((name) => element('button', name)));
    const policy = new PagePolicy({ order: 'sampled', temperature: 2 });
    const draw = (key: string) => propose('Click on B2.', page, { n: 2, policy, key });
    expect(await draw('x')).to.deep.equal(await draw('x'));
    const firsts = await Promise.all(Array.from({ length: 30 }, (_, index) => draw(`k${index}`)));
    expect(new Set(firsts.map(([first]) => JSON.stringify(first?.action))).size).to.be.above(1);
    expect(policy.name).to.equal('page-sampled T=2');
    expect(() => new PagePolicy({ temperature: 0 })).to.throw('expected a temperature above 0');
  });

  it('does not repeat a click that led nowhere', async () => {
    const page = observation([element('button', 'Help'), element('button', 'Help me')]);
    const first = await best('Get help me now', page);
    const second = await best('Get help me now', page, [did(first.action), did(first.action)]);
    expect(second.action).not.to.deep.equal(first.action);
  });
});
