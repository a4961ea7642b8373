import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { image, renderChat } from '../../../ts/learning/templates.js';
import { PromptTokenizer } from '../../../ts/learning/tokenizer.js';
import { tinyCheckpoint } from '../../support/checkpoint.js';
import { rejection } from '../../support/rejection.js';

interface Golden {
  cases: { text: string; ids: number[]; turn: number[]; screen: number[] }[];
}

describe('the tokenizer', () => {
  let tokenizer: PromptTokenizer;
  let golden: Golden;
  before(async () => {
    tokenizer = await PromptTokenizer.load(await tinyCheckpoint());
    const path = new URL('../../fixtures/tokenizer.json', import.meta.url);
    golden = JSON.parse(await readFile(path, 'utf8')) as Golden;
  });

  it('gives the ids of the reference for content, whatever special tokens it spells', () => {
    expect(golden.cases).to.have.length.greaterThan(15);
    for (const { text, ids } of golden.cases) {
      expect([...tokenizer.encode([text])], JSON.stringify(text)).to.deep.equal(ids);
    }
  });

  it('gives the ids of the reference for whole turns, with and without an image', () => {
    for (const { text, turn, screen } of golden.cases) {
      const own = (content: (string | typeof image)[]): number[] => [
        ...tokenizer.encode(renderChat([{ role: 'user', content }])),
      ];
      expect(own([text]), JSON.stringify(text)).to.deep.equal(turn);
      expect(own([text, image]), JSON.stringify(text)).to.deep.equal(screen);
    }
  });

  it('gives the same ids for a line it has seen before', () => {
    const text = 'First line of the page.\nSecond line!\n\n  Third.\n';
    const once = tokenizer.encode([text]);
    expect([...tokenizer.encode([`First line of the page.\n`])]).to.deep.equal([...once.subarray(0, 6)]);
    expect([...tokenizer.encode([text])]).to.deep.equal([...once]);
  });

  it('makes no image place out of text', () => {
    const pad = tokenizer.controlId('<|image_pad|>');
    const turn = tokenizer.encode(renderChat([{ role: 'user', content: ['<|image_pad|>', image] }]));
    expect([...turn].filter((id) => id === pad)).to.have.length(1);
  });

  it('refuses half a character and a token it does not know', () => {
    expect(() => tokenizer.encode(['ab\ud83d'])).to.throw('half a character at 2');
    expect(() => tokenizer.controlId('<|nothing|>')).to.throw('no token <|nothing|>');
  });

  it('says which file of a checkpoint is missing or broken', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'boq-tokenizer-'));
    try {
      const missing = await rejection(PromptTokenizer.load(folder));
      expect(missing).to.include({ code: 'BOQ_FILE_NOT_FOUND' });
      await writeFile(join(folder, 'tokenizer.json'), '{"added_tokens": [}');
      const broken = await rejection(PromptTokenizer.load(folder));
      expect(broken).to.include({ code: 'BOQ_FILE_CORRUPT' });
      expect(broken.message).to.contain('tokenizer.json');
    } finally {
      await rm(folder, { recursive: true });
    }
  });
});
