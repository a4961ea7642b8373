/** An action of one's own: going to an address. usage: node examples/custom-action.js */
import { ActionRegistry, actionSchema, runAgent, standardActions } from '@boq/native';

const open = {
  type: 'open',
  description: 'Go to an address.',
  schema: actionSchema('open', { url: { type: 'string', minLength: 1 } }),
  needsPoint: false,
  execute: async (surface, { url }) => {
    const fault = await surface.goto(url);
    return { ok: fault === null, message: fault ?? `opened ${url}` };
  },
};
const shop = new URL('pages/tea-shop.html', import.meta.url).href;
const opener = {
  name: 'opener',
  async *propose() {
    yield { type: 'candidate', candidate: { action: { type: 'open', url: shop }, thought: '', note: '' } };
  },
};
const { record } = await runAgent({
  url: 'about:blank',
  task: 'Go to the tea shop.',
  successText: 'Green tea',
  policy: opener,
  selector: 'prompting',
  actions: new ActionRegistry([...standardActions, open]),
  allow: ['file:'], // the web is open to an agent, files are not
  maxSteps: 2,
  out: 'runs/example-action',
});
console.log(`${record.outcome} after ${record.steps} step`);
