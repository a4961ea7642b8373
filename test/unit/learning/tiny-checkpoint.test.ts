import { mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { readSafetensors } from '../../../ts/core/safetensors.js';
import {
  tinyTensorRules,
  tinyTensorValues,
  writeTinyCheckpoint,
} from '../../../ts/learning/tiny-checkpoint.js';

interface Golden {
  tensors: Record<string, { first: number[]; at: Record<string, number> }>;
}

describe('the tiny checkpoint', () => {
  let folder: string;
  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'boq-tiny-'));
  });
  after(() => rm(folder, { recursive: true, force: true }));

  it('has the values that its definition gives in Python', async () => {
    const golden = JSON.parse(
      await readFile(new URL('../../fixtures/tiny-checkpoint.json', import.meta.url), 'utf8'),
    ) as Golden;
    const rules = new Map(tinyTensorRules().map((rule) => [rule.name, rule]));
    expect(Object.keys(golden.tensors)).to.have.length.greaterThan(3);
    for (const [name, { first, at }] of Object.entries(golden.tensors)) {
      const rule = rules.get(name);
      if (rule === undefined) throw new Error(`no rule for ${name}`);
      const last = Math.max(...Object.keys(at).map(Number));
      const values = tinyTensorValues(rule, last + 1);
      expect([...values.subarray(0, first.length)], name).to.deep.equal(first);
      for (const [index, value] of Object.entries(at)) expect(values[Number(index)], name).to.equal(value);
    }
  });

  it('is made once, whole, and with the layout of a real checkpoint', async () => {
    const target = join(folder, 'models', 'tiny');
    expect(await writeTinyCheckpoint(target)).to.equal(true);
    const before = await stat(join(target, 'model.safetensors'));
    expect(await writeTinyCheckpoint(target)).to.equal(false);
    expect((await stat(join(target, 'model.safetensors'))).mtimeMs).to.equal(before.mtimeMs);
    expect(await readdir(join(folder, 'models')), 'nothing temporary stays').to.deep.equal(['tiny']);

    const tensors = await readSafetensors(join(target, 'model.safetensors'));
    expect(tensors.get('model.embed_tokens.weight')?.shape).to.deep.equal([151936, 128]);
    expect(tensors.size).to.equal(tinyTensorRules().length);
    const config = JSON.parse(await readFile(join(target, 'config.json'), 'utf8'));
    expect(config.model_type).to.equal('qwen2_5_vl');
    expect(config.rope_scaling.mrope_section.reduce((a: number, b: number) => a + b)).to.equal(
      config.hidden_size / config.num_attention_heads / 2,
    );
  });

  it('replaces a folder that holds another version', async () => {
    const target = join(folder, 'models', 'tiny');
    await writeFile(join(target, 'README.md'), 'an older one\n');
    expect(await writeTinyCheckpoint(target)).to.equal(true);
    expect(await readdir(join(folder, 'models'))).to.deep.equal(['tiny']);
    expect(await readFile(join(target, 'README.md'), 'utf8')).to.contain('Random weights');
  });
});
