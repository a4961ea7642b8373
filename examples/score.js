/** Three candidates get their values. usage: node examples/score.js IMAGE MODEL [CHECKPOINT] */
import { readFile } from 'node:fs/promises';
import { describeAction, ModelSet } from '@boq/native';

const [picture, model, embedder = 'models/tiny'] = process.argv.slice(2);
const models = new ModelSet({ embedder });
const { critic } = await models.open(model);
const screenshot = { bytes: await readFile(picture) };
const step = critic.begin({ instruction: 'Order a pot of green tea.', history: [], screenshot });
const actions = [
  { type: 'click', element: 'button "Order"' },
  { type: 'click', element: 'checkbox "Green tea"' },
  { type: 'scroll', direction: 'down' },
];
for (const action of actions) step.add({ action, thought: '', note: '' });
const { q, v } = await step.scores();
actions.forEach((action, index) => {
  console.log(`Q ${q[index].toFixed(4)}  ${describeAction(action)}`);
});
console.log(`V ${v.toFixed(4)}  of the state`);
await models.dispose();
