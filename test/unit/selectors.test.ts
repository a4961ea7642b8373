import { expect } from 'chai';
import { createSelector, parseSelectorSpec, recommendedSelector } from '../../ts/agent/selectors/registry.js';
import { isBoqError } from '../../ts/core/errors.js';
import { randomSource } from '../../ts/core/random.js';
import { candidate } from './support/fake-agent.js';

const three = [candidate('a'), candidate('b'), candidate('c')];

async function choose(spec: string, q: number[] | null = null, draw = 0): Promise<number> {
  const scores = q && { q, spread: q.map(() => 0), v: 0 };
  const request = { candidates: three, scores, random: randomSource(['test', draw]), history: [], ...seen };
  return (await createSelector(spec).select(request)).index;
}

async function shares(spec: string, draws = 3000): Promise<number[]> {
  const counts = [0, 0, 0];
  for (let draw = 0; draw < draws; draw++) counts[await choose(spec, null, draw)]! += 1;
  return counts.map((count) => count / draws);
}

function usageError(work: () => unknown): string {
  try {
    work();
  } catch (error) {
    if (isBoqError(error, 'BOQ_USAGE')) return error.message;
  }
  throw new Error('expected BOQ_USAGE');
}

const seen = {
  instruction: 'click the goal',
  screenshot: { bytes: new Uint8Array(), format: 'webp', width: 1, height: 1 },
} as const;

describe('selectors', () => {
  it('prompting asks for one candidate, the others for N', () => {
    expect(createSelector('prompting').candidateCount(3)).to.equal(1);
    for (const spec of ['first', 'random', 'epsilon-greedy', 'best-of-q']) {
      expect(createSelector(spec).candidateCount(5), spec).to.equal(5);
    }
  });

  it('random is uniform over all', async () => {
    for (const share of await shares('random')) expect(share).to.be.closeTo(1 / 3, 0.03);
  });

  it('epsilon-greedy shares epsilon among the others', async () => {
    const [first, second, third] = await shares('epsilon-greedy@epsilon=0.4');
    expect(first).to.be.closeTo(0.6, 0.03);
    expect(second).to.be.closeTo(0.2, 0.03);
    expect(third).to.be.closeTo(0.2, 0.03);
    expect(await shares('epsilon-greedy@epsilon=0', 50)).to.deep.equal([1, 0, 0]);
  });

  it('epsilon-greedy takes the only candidate there is', async () => {
    const request = { candidates: [three[0]!], scores: null, history: [], ...seen };
    const selector = createSelector('epsilon-greedy@epsilon=1');
    const selection = await selector.select({ ...request, random: randomSource([1]) });
    expect(selection).to.deep.include({ index: 0, evidence: { explored: false } });
  });

  it('best-of-q takes the highest, and the earlier of equals', async () => {
    expect(await choose('best-of-q', [0.1, 0.3, 0.2])).to.equal(1);
    expect(await choose('best-of-q', [0.3, 0.3 + 5e-7, 0.3])).to.equal(0);
    expect(await choose('best-of-q', [0.1, 0.3, 0.3 + 5e-7])).to.equal(1);
    expect(await choose('best-of-q', [-3, -2, -1])).to.equal(2);
  });

  it('best-of-q with a margin leaves the first only for a larger gain', async () => {
    expect(await choose('best-of-q@margin=0.25', [0.5, 0.75, 0])).to.equal(0);
    expect(await choose('best-of-q@margin=0.25', [0.5, 0.76, 0])).to.equal(1);
  });

  it('best-of-q leaves a first that leads nowhere, whatever the margin', async () => {
    expect(await choose('best-of-q@margin=0.5&rescue=0.1', [0, 0.07, 0.05])).to.equal(1);
    expect(await choose('best-of-q@margin=0.5&rescue=0.1', [-0.2, 0.07, 0.05])).to.equal(1);
    expect(await choose('best-of-q@margin=0.5&rescue=0.1', [0.01, 0.07, 0.05])).to.equal(0);
    expect(await choose('best-of-q@margin=0.5&rescue=0.1', [0, 0.015, 0])).to.equal(0);
    expect(createSelector('best-of-q@rescue=0.1&margin=0.5').name).to.equal(
      'best-of-q@margin=0.5&rescue=0.1',
    );
  });

  it('names carry the settings, and the default margin is the plain rule', () => {
    expect(createSelector('best-of-q').name).to.equal('best-of-q');
    expect(createSelector('best-of-q@margin=0').name).to.equal('best-of-q');
    expect(createSelector('best-of-q@margin=0.050').name).to.equal('best-of-q@margin=0.05');
    expect(createSelector('epsilon-greedy').name).to.equal('epsilon-greedy@epsilon=0.5');
  });

  it('refuses what it does not know, and says what is near', () => {
    expect(usageError(() => createSelector('best-of-k'))).to.include('best-of-q');
    expect(usageError(() => createSelector('constructor'))).to.include('did you mean');
    expect(usageError(() => createSelector('best-of-q@margn=1'))).to.include('margin=VALUE');
    expect(usageError(() => createSelector('random@x=1'))).to.include('takes none');
    for (const value of ['', 'x', '-0.1', 'NaN', 'auto']) {
      expect(
        usageError(() => createSelector(`best-of-q@margin=${value}`)),
        value,
      ).to.include('margin');
    }
    expect(usageError(() => createSelector('epsilon-greedy@epsilon=1.1'))).to.include('0 to 1');
  });

  it('leaves words in settings to whoever asked for the parts', () => {
    expect(parseSelectorSpec('best-of-q@margin=auto')).to.deep.equal({
      rule: 'best-of-q',
      settings: { margin: 'auto' },
    });
    expect(parseSelectorSpec('recommended')).to.deep.equal(parseSelectorSpec(recommendedSelector));
  });
});
