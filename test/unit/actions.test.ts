import { expect } from 'chai';
import { fieldValue } from '../../ts/agent/actions/field-values.js';
import { matchOption } from '../../ts/agent/actions/options.js';
import { ActionRegistry, standardActions } from '../../ts/agent/actions/registry.js';
import { isBoqError } from '../../ts/core/errors.js';

describe('actions', () => {
  const registry = new ActionRegistry();

  it('are the eight of the paper', () => {
    expect(registry.types).to.deep.equal([
      'click',
      'write',
      'scroll',
      'go_back',
      'refresh',
      'wait',
      'restart',
      'answer',
    ]);
  });

  const good = [
    { type: 'click', element: 'button "OK"' },
    { type: 'write', element: 'textbox "Name"', text: '', submit: false },
    { type: 'scroll', direction: 'left' },
    { type: 'go_back' },
    { type: 'answer', text: '42' },
  ];
  for (const action of good) {
    it(`accepts ${JSON.stringify(action)}`, () => expect(registry.check(action)).to.equal(null));
  }

  const bad: [string, unknown, RegExp][] = [
    ['no object', 'click', /expected an action object, got string/],
    ['a list', [], /got a list/],
    ['an unknown type', { type: 'fly' }, /expected an action of type click, .*got "fly"/],
    ['no type', { element: 'x' }, /got none/],
    [
      'a missing argument',
      { type: 'write', element: 'x', text: 'y' },
      /must have required property 'submit'/,
    ],
    ['an empty element', { type: 'click', element: '' }, /element must NOT have fewer than 1 characters/],
    ['an extra argument', { type: 'click', element: 'x', x: 3 }, /additional properties \("x"\)/],
    ['a wrong direction', { type: 'scroll', direction: 'in' }, /direction must be equal to one of/],
  ];
  for (const [name, action, message] of bad) {
    it(`refuses ${name} and says why`, () => expect(registry.check(action)).to.match(message));
  }

  it('turns a malformed candidate into an error that keeps what was said', () => {
    const parsed = registry.parseCandidate({ thought: 'go', action: { type: 'fly' } });
    expect(parsed).to.have.nested.property('error.code', 'BOQ_CANDIDATE_INVALID');
    expect(parsed).to.have.nested.property('error.raw', '{"thought":"go","action":{"type":"fly"}}');
  });

  it('reads thought and note, empty where absent', () => {
    const action = { type: 'wait' };
    expect(registry.parseCandidate({ action })).to.deep.equal({
      candidate: { action, thought: '', note: '' },
    });
    expect(registry.parseCandidate({ action, thought: 3 })).to.have.property('error');
  });

  it('refuses two actions of one name', () => {
    const twice = () => new ActionRegistry([...standardActions, ...standardActions]);
    expect(twice)
      .to.throw()
      .that.satisfies((error: unknown) => isBoqError(error, 'BOQ_INVALID_ARGUMENT'));
  });
});

describe('field values', () => {
  const cases: [string, string, string | null][] = [
    ['date', '2025-03-21', '2025-03-21'],
    ['date', '03/21/2025', '2025-03-21'],
    ['date', '21.3.2025', '2025-03-21'],
    ['date', 'March 1st, 2025', '2025-03-01'],
    ['date', 'tomorrow', null],
    ['date', '2025-13-01', null],
    ['month', '2025-03', '2025-03'],
    ['time', '9:05 PM', '21:05'],
    ['time', '12:30 am', '00:30'],
    ['time', '23:59', '23:59'],
    ['time', '7', null],
    ['datetime-local', '03/21/2025 5:00 pm', '2025-03-21T17:00'],
    ['color', 'Red', '#ff0000'],
    ['color', '#A1B2C3', '#a1b2c3'],
    ['color', 'reddish', null],
    ['range', '7', '7'],
    ['range', 'seven', null],
  ];
  for (const [type, text, value] of cases) {
    it(`${type}: ${text} is ${value}`, () => expect(fieldValue(type, text)).to.equal(value));
  }
});

describe('options of a list', () => {
  const options = ['Niger', 'Nigeria', 'New York', 'York'].map((text) => ({ text }));
  it('prefers equal text', () => expect(matchOption(options, 'niger')).to.equal('Niger'));
  it('finds a quoted option', () => expect(matchOption(options, 'option "York" of "Town"')).to.equal('York'));
  it('prefers the longest contained option', () =>
    expect(matchOption(options, 'New York in the list')).to.equal('New York'));
  it('completes an unambiguous beginning only', () => {
    expect(matchOption(options, 'Yo')).to.equal('York');
    expect(matchOption(options, 'N')).to.equal(null);
  });
});
