/** Candidates in text of every form that models give them. */
import { expect } from 'chai';
import { CandidateReader } from '../../ts/agent/policy/candidate-reader.js';
import { objectsIn, parseLenient } from '../../ts/agent/vlm/json-objects.js';

const click = (element: string) => ({ thought: 'it is there', note: '', action: { type: 'click', element } });
const text = (element: string) => JSON.stringify(click(element));

/** Reads a text in pieces of every length; all must agree. */
function read(answer: string): unknown[] {
  const results = [1, 3, 7, answer.length].map((length) => {
    const reader = new CandidateReader();
    const found: unknown[] = [];
    for (let i = 0; i < answer.length; i += length) found.push(...reader.push(answer.slice(i, i + length)));
    found.push(...reader.end());
    return found;
  });
  for (const result of results) expect(result).to.deep.equal(results[0]);
  return results[0]!;
}

describe('CandidateReader', () => {
  const two = [click('a'), click('b')];
  for (const [name, answer] of [
    ['a list in an object', `{"candidates": [${text('a')}, ${text('b')}]}`],
    ['a bare list', `[${text('a')},\n${text('b')}]`],
    ['one object a line', `${text('a')}\n${text('b')}`],
    ['a fence', `Here they are:\n\`\`\`json\n{"candidates": [${text('a')}, ${text('b')}]}\n\`\`\`\nDone.`],
    ['prose with quotation marks', `I'd say "click" is 5" wide: ${text('a')} or else ${text('b')}`],
    ['thoughts before the answer', `<think>maybe ${text('x')}? no</think>[${text('a')}, ${text('b')}]`],
    ['commas too many', `{"candidates": [${text('a')}, ${text('b')},],}`],
    [
      "Python's spelling",
      `[{'thought': 'it is there', 'note': '', 'action': {'type': 'click', 'element': 'a'}}, ${text('b')}]`,
    ],
    ['a bracket in prose', `First { then "${text('a')} and ${text('b')}`],
    ['a list that is called action', `{"action": [${text('a')}, ${text('b')}]}`],
    ['a last one that is cut off', `{"candidates": [${text('a')}, ${text('b')}, {"thought": "and th`],
    ['no brackets closed at the end', `{"candidates": [${text('a')}, ${text('b')}`],
  ] as const) {
    it(`reads ${name}`, () => {
      expect(read(answer)).to.deep.equal(two);
    });
  }

  it('hands a candidate on with its last character, not later', () => {
    const reader = new CandidateReader();
    const first = `{"candidates": [${text('a')}`;
    expect(reader.push(first.slice(0, -1))).to.deep.equal([]);
    expect(reader.push('}')).to.deep.equal([click('a')]);
    expect(reader.push(', {"thought"')).to.deep.equal([]);
  });

  it('takes actions without anything around them, once nothing else came', () => {
    const reader = new CandidateReader();
    expect(reader.push('{"type": "click", "element": "a"}\n{"type": "wait"}')).to.deep.equal([]);
    expect(reader.end()).to.deep.equal([
      { action: { type: 'click', element: 'a' } },
      { action: { type: 'wait' } },
    ]);
  });

  it('keeps brackets and quotation marks within strings', () => {
    const odd = { thought: 'a } and a { and "quotes" and \\', note: ']', action: { type: 'wait' } };
    expect(read(`{"candidates": [${JSON.stringify(odd)}]}`)).to.deep.equal([odd]);
  });

  it('finds nothing where nothing is', () => {
    for (const nothing of [
      '',
      'I cannot help with that.',
      '{"answer": 5}',
      '}{][',
      '<think>{"action": {}}',
    ]) {
      expect(read(nothing), nothing).to.deep.equal([]);
    }
  });
});

describe('parseLenient', () => {
  it('mends what models write', () => {
    expect(parseLenient('{"a": "line\nbreak", "b": [1, 2, ], }')).to.deep.equal({
      a: 'line\nbreak',
      b: [1, 2],
    });
    expect(parseLenient("{'a': True, 'b': None, 'c': 'it\\'s \"so\"'}")).to.deep.equal({
      a: true,
      b: null,
      c: 'it\'s "so"',
    });
    expect(parseLenient('{"a": "True, None,}"}')).to.deep.equal({ a: 'True, None,}' });
    expect(parseLenient('{a: 1}')).to.equal(undefined);
  });
});

describe('objectsIn', () => {
  it('says how deep an object lies', () => {
    expect(objectsIn('{"a": [{"b": {}}]}')).to.deep.equal([
      { text: '{}', depth: 3 },
      { text: '{"b": {}}', depth: 2 },
      { text: '{"a": [{"b": {}}]}', depth: 0 },
    ]);
  });
});
