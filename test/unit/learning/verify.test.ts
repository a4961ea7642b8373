import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { bytesView, readSafetensors, writeSafetensors } from '../../../ts/core/safetensors.js';
import { renderChat } from '../../../ts/learning/templates.js';
import { PromptTokenizer } from '../../../ts/learning/tokenizer.js';
import {
  pythonReference,
  syntheticImage,
  type VerifiedEmbedder,
  verify,
  verifyCases,
} from '../../../ts/learning/verify.js';
import { tinyCheckpoint } from '../../support/checkpoint.js';
import { FakeEmbedder, fakeWidth } from '../../support/fake-run.js';
import { rejection } from '../../support/rejection.js';

describe('verification against a reference', () => {
  let ours: VerifiedEmbedder;
  let tokenizer: PromptTokenizer;
  before(async () => {
    tokenizer = await PromptTokenizer.load(await tinyCheckpoint());
    const fake = new FakeEmbedder();
    ours = {
      path: 'models/fake',
      profile: fake.profile,
      encode: (prompt) => tokenizer.encode(prompt),
      embed: (requests) => fake.embed(requests),
    };
  });

  /** A reference that agrees but for what `change` does to its answer. */
  const reference = (change: (ids: Record<string, number[]>, rows: Record<string, Float32Array>) => void) => {
    return async (folder: string): Promise<void> => {
      const request = JSON.parse(await readFile(join(folder, 'request.json'), 'utf8'));
      const images = await readSafetensors(join(folder, 'images.safetensors'));
      const ids: Record<string, number[]> = {};
      const rows: Record<string, Float32Array> = {};
      const cases = verifyCases();
      for (const [i, { name, images: names }] of request.cases.entries()) {
        for (const image of names) expect(images.get(image)?.shape).to.have.length(3);
        const { turns, images: pixels } = cases[i] ?? { turns: [], images: [] };
        const prompt = renderChat(turns);
        ids[name] = [...tokenizer.encode(prompt)];
        rows[name] = (await ours.embed([{ prompt, images: pixels }])).vectors;
      }
      change(ids, rows);
      const answer = Object.entries(ids).map(([name, list]) => ({ name, ids: list, tokens: fakeWidth }));
      await writeFile(
        join(folder, 'answer.json'),
        JSON.stringify({ transformers: '4', torch: '2', cases: answer }),
      );
      await writeSafetensors(
        join(folder, 'vectors.safetensors'),
        Object.entries(rows).map(([name, row]) => ({
          name,
          dtype: 'F32' as const,
          shape: [row.length],
          data: bytesView(row),
        })),
      );
    };
  };

  it('passes where ids and vectors agree', async () => {
    const result = await verify(
      ours,
      reference(() => undefined),
      1,
    );
    expect(result.passed).to.equal(true);
    expect(result.outcomes).to.have.length(verifyCases().length);
    for (const { relativeL2, cosine } of result.outcomes) {
      expect(relativeL2).to.equal(0);
      expect(cosine).to.be.closeTo(1, 1e-12);
    }
  });

  it('points at the token that differs, and at a vector that is too far', async () => {
    const result = await verify(
      ours,
      reference((ids, rows) => {
        (ids.languages as number[])[20] = 1;
        const row = rows.screenshot as Float32Array;
        row[0] = (row[0] as number) + 0.001;
      }),
      1,
    );
    expect(result.passed).to.equal(false);
    const failed = result.outcomes.filter(({ passed }) => !passed);
    expect(failed.map(({ name }) => name)).to.deep.equal(['languages', 'screenshot']);
    expect(failed[0]?.firstDifferentId).to.equal(20);
    expect(failed[1]?.relativeL2).to.be.greaterThan(1e-4);
  });

  it('compares only what the reference computes', async () => {
    const pooled = { ...ours, profile: { ...ours.profile, pooling: 'last' } };
    expect(
      (
        await rejection(
          verify(
            pooled,
            reference(() => undefined),
            1,
          ),
        )
      ).code,
    ).to.equal('BOQ_USAGE');
  });

  it('draws the same picture every time, and another for another seed', () => {
    expect(syntheticImage(40, 30, 1)).to.deep.equal(syntheticImage(40, 30, 1));
    expect(syntheticImage(40, 30, 1)).not.to.deep.equal(syntheticImage(40, 30, 2));
    expect(syntheticImage(40, 30, 1).data).to.have.length(40 * 30 * 3);
  });

  it('runs a program, hears its progress, and quotes why it failed', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'boq-reference-'));
    try {
      const good = join(folder, 'good.cjs');
      await writeFile(
        good,
        "console.error('one-word'); require('fs').writeFileSync(process.argv[2] + '/done', '');",
      );
      const lines: string[] = [];
      await pythonReference(process.execPath, good, { onLine: (line) => lines.push(line) })(folder);
      expect(lines).to.deep.equal(['one-word']);
      expect(await readFile(join(folder, 'done'), 'utf8')).to.equal('');
      const bad = join(folder, 'bad.cjs');
      await writeFile(bad, "console.error('No module named torch'); process.exit(1);");
      const failed = await rejection(pythonReference(process.execPath, bad)(folder));
      expect(failed.code).to.equal('BOQ_USAGE');
      expect(failed.message).to.contain('No module named torch');
      const none = await rejection(pythonReference(join(folder, 'python'), bad)(folder));
      expect(none.message).to.contain('--python');
    } finally {
      await rm(folder, { recursive: true });
    }
  });
});
