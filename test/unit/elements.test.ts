import { expect } from 'chai';
import { describeElements, ordinal } from '../../ts/agent/elements.js';
import { findElement } from '../../ts/agent/localizer/page.js';
import { element } from '../support/page-elements.js';

const words = (elements: Parameters<typeof describeElements>[0]) =>
  describeElements(elements).map(({ description }) => description);

describe('element descriptions', () => {
  it('are role and quoted name', () => {
    expect(words([element('button', 'OK'), element('textbox', '')])).to.deep.equal([
      'button "OK"',
      'textbox',
    ]);
  });

  it('count equals in reading order', () => {
    expect(words([element('button', 'OK'), element('link', 'OK'), element('button', 'OK')])).to.deep.equal([
      'button "OK" (1st)',
      'link "OK"',
      'button "OK" (2nd)',
    ]);
  });

  it('use the row where it tells equals apart', () => {
    const rows = ['Ann', 'Bob', 'Bob'].map((context) => element('button', 'delete', { context }));
    expect(words(rows)).to.deep.equal([
      'button "delete" in "Ann"',
      'button "delete" in "Bob" (1st)',
      'button "delete" in "Bob" (2nd)',
    ]);
  });

  it('stay unique with quotes and long names', () => {
    const long = 'x'.repeat(80);
    const all = words([
      element('link', 'say "hi"'),
      element('link', `${long}a`),
      element('link', `${long}b`),
    ]);
    expect(all[0]).to.equal('link "say \'hi\'"');
    expect(new Set(all).size).to.equal(3);
    expect(all[1]).to.have.length.below(80);
  });

  it('spells ordinals', () => {
    expect([1, 2, 3, 4, 11, 12, 21, 102].map(ordinal).join(' ')).to.equal(
      '1st 2nd 3rd 4th 11th 12th 21st 102nd',
    );
  });
});

describe('page localizer', () => {
  const elements = describeElements([
    element('button', 'eget'),
    element('button', 'Eget'),
    element('button', 'Delete', { context: 'Ann' }),
    element('button', 'Delete', { context: 'Bob' }),
    element('textbox', 'Email address'),
    element('combobox', 'Country', { options: ['France', 'Norway'] }),
  ]);
  const find = (description: string): string => {
    const found = findElement(description, elements);
    return typeof found === 'string' ? found : found.description;
  };

  it('finds every element by its own description', () => {
    for (const { description } of elements) expect(find(description)).to.equal(description);
  });
  it('forgives case, role names and missing quotes', () => {
    expect(find('the Email address field')).to.equal('textbox "Email address"');
    expect(find('"email address" input')).to.equal('textbox "Email address"');
  });
  it('finds a list by one of its options', () =>
    expect(find('option "Norway"')).to.equal('combobox "Country"'));
  it('counts and reads the context', () => {
    expect(find('Delete button (2nd)')).to.equal('button "Delete" in "Bob"');
    expect(find('"Delete" button of Ann')).to.equal('button "Delete" in "Ann"');
  });
  it('never guesses', () => {
    expect(find('button "Help"')).to.equal('no element on the page matches button "Help"');
    expect(find('"Delete" button')).to.match(/^several elements match "Delete" button: /);
    expect(find('"Delete" button (3rd)')).to.equal('only 2 elements match "Delete" button (3rd)');
  });
});
