/** Wrong usage of collect, evaluate, iterate and agent: exit code 2, and the nearest right word. */
import { expect } from 'chai';
import { main as agent } from '../../ts/cli/agent.js';
import { main as collect } from '../../ts/cli/collect.js';
import { main as evaluate } from '../../ts/cli/evaluate.js';
import { main as iterate } from '../../ts/cli/iterate.js';

/** Runs a command with its stderr caught. */
async function told(main: (argv: readonly string[]) => Promise<number>, ...argv: string[]) {
  const { write } = process.stderr;
  let stderr = '';
  process.stderr.write = (text: string | Uint8Array) => {
    stderr += text;
    return true;
  };
  try {
    return { code: await main(argv), stderr };
  } finally {
    process.stderr.write = write;
  }
}

describe('wrong usage', () => {
  const rest = ['--seeds', '0-1', '--out', 'nowhere'];
  const miniwob = ['--benchmark', 'miniwob', '--tasks', 'click-button', ...rest];
  const page = ['--url', 'https://example.org', '--task', 'look', '--selector', 'first', '--out', 'nowhere'];

  for (const [what, main, argv, words] of [
    ['an unknown option', collect, [...miniwob, '--epsilom', '0.5'], '--epsilon'],
    ['a missing option', collect, ['--benchmark', 'miniwob', ...rest], '--tasks'],
    [
      'an unknown task',
      collect,
      ['--benchmark', 'miniwob', '--tasks', 'click-buton', ...rest],
      'click-button',
    ],
    ['an unknown set', collect, ['--benchmark', 'miniwob', '--tasks', '@demo-trian', ...rest], '@demo-train'],
    ['an unknown benchmark', collect, ['--benchmark', 'minwob', '--tasks', 'x', ...rest], 'miniwob'],
    ['an unknown policy', collect, [...miniwob, '--policy', 'pages'], 'page'],
    ['an unknown selector', collect, [...miniwob, '--selector', 'randm'], 'random'],
    ['a selector without its model', collect, [...miniwob, '--selector', 'best-of-q'], '--model'],
    ['a range upside down', collect, [...miniwob, '--seeds', '5-1'], 'range'],
    ['no workers', collect, [...miniwob, '--workers', '0'], 'at least 1'],
    ['an epsilon above 1', collect, [...miniwob, '--epsilon', '1.5'], 'from 0 to 1'],
    ['an extra argument', collect, [...miniwob, 'more'], 'too many arguments'],
    ['best-of-q without a model', evaluate, [...miniwob, '--selectors', 'prompting,best-of-q'], '--model'],
    [
      'a baseline that is not played',
      evaluate,
      [...miniwob, '--selectors', 'random', '--baseline', 'first'],
      'random',
    ],
    ['a margin that is no number', evaluate, [...miniwob, '--selectors', 'best-of-q@margin=big'], 'margin'],
    ['a control without a name', evaluate, [...miniwob, '--selectors', 'first', '--control', '=x'], 'NAME'],
    [
      'an unknown estimand',
      evaluate,
      [...miniwob, '--selectors', 'first', '--estimand', 'all'],
      'unseen-tasks',
    ],
    ['an unknown setting of training', iterate, [...miniwob, '--train', 'tua=0.7'], 'tau'],
    ['a setting of training out of range', iterate, [...miniwob, '--train', 'tau=2'], 'from 0.001'],
    ['a budget without a unit', iterate, [...miniwob, '--budget', '5'], '90min'],
    ['validation on seeds of training', iterate, [...miniwob, '--validation-seeds', '1-2'], 'apart'],
    ['a loop with an unknown rule', iterate, [...miniwob, '--selector', 'best'], 'best-of-q'],
    ['a model without an endpoint', collect, [...miniwob, '--policy', 'vlm'], '--endpoint'],
    [
      'an endpoint without a model',
      agent,
      ['--policy', 'vlm', '--endpoint', 'ollama', '--dry-run'],
      '--vlm-model',
    ],
    ['an unknown localizer', collect, [...miniwob, '--localizer', 'holo15'], 'did you mean holo1'],
    [
      'dollars without a price',
      collect,
      [...miniwob, '--endpoint', 'vllm', '--vlm-model', 'own', '--max-usd', '1'],
      '"own"',
    ],
    ['a page without a task', agent, ['--url', 'example.org'], '--task'],
    ['an unknown rule for the agent', agent, ['--selector', 'best'], 'best-of-q'],
    ['an unknown action', agent, [...page, '--actions', 'goto,pres'], 'press'],
    ['a viewport that is none', agent, [...page, '--viewport', 'large'], '1280x720'],
    ['a viewport too small', agent, [...page, '--viewport', '10x10'], '50 to 10,000'],
    ['a domain that is none', agent, [...page, '--allow', 'exa mple'], 'example.org'],
    ['a start that is denied', agent, [...page, '--deny', 'example.org'], 'is denied'],
    ['a secret without a value', agent, [...page, '--secret', 'NO_SUCH_VARIABLE'], 'NO_SUCH_VARIABLE'],
    ['a password without a name', agent, [...page, '--basic-auth', 'sesame'], 'name:password'],
    ['a password by an unknown name', agent, [...page, '--basic-auth', 'kim:{{door}}'], 'door'],
    ['an unknown way to confirm', agent, [...page, '--confirm', 'maybe'], 'allow'],
  ] as const) {
    it(`tells of ${what}`, async () => {
      const { code, stderr } = await told(main, ...argv);
      expect(code, stderr).to.equal(2);
      expect(stderr).to.include(words);
      expect(stderr).not.to.match(/\n\s+at /);
    });
  }
});
