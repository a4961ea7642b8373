import { expect } from 'chai';
import { fingerprint, Progress, repetitionLimit } from '../../ts/agent/browser/progress.js';
import { element, observation } from '../support/page-elements.js';

describe('progress', () => {
  const button = element('button', 'More');
  const page = (value = '') =>
    observation([button, element('textbox', 'Name', { id: 900, value, box: button.box })]);
  const press = { type: 'click', element: 'button "More"' };

  it('tells when an action changed nothing, once', () => {
    const progress = new Progress();
    expect(progress.observed(page())).to.deep.equal([]);
    expect(progress.acting(press)).to.equal(null);
    expect(progress.observed(page())).to.deep.equal(['the last action changed nothing that can be seen']);
    expect(progress.observed(page())).to.deep.equal([]);
    expect(progress.acting(press)).to.equal(null);
    expect(progress.observed(page())).to.deep.equal([
      'the last action has been done 2 times and changed nothing',
    ]);
  });

  it('says nothing where something changed or nothing was to change', () => {
    const progress = new Progress();
    progress.observed(page());
    progress.acting(press);
    expect(progress.observed(page('typed'))).to.deep.equal([]);
    progress.acting({ type: 'wait' });
    expect(progress.observed(page('typed'))).to.deep.equal([]);
  });

  it('refuses the same action after some repetitions, and takes another one', () => {
    const progress = new Progress();
    progress.observed(page());
    for (let turn = 0; turn < repetitionLimit; turn++) {
      expect(progress.acting(press)).to.equal(null);
      progress.observed(page());
    }
    expect(progress.acting(press)).to.match(/^not done again: it was done 4 times/);
    progress.observed(page());
    expect(progress.acting({ type: 'scroll', direction: 'down' })).to.equal(null);
    progress.observed(page('new'));
    expect(progress.acting(press)).to.equal(null);
  });

  it('lets an action be repeated while it changes the page', () => {
    const progress = new Progress();
    for (let turn = 0; turn < 20; turn++) {
      progress.observed(page(String(turn)));
      expect(progress.acting(press)).to.equal(null);
    }
  });

  it('compares what a person would compare', () => {
    expect(fingerprint(page())).to.equal(fingerprint(page()));
    expect(fingerprint(page())).not.to.equal(fingerprint(page('x')));
    expect(fingerprint(page())).not.to.equal(fingerprint({ ...page(), url: 'https://example.org/2' }));
  });
});
