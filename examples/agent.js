/** The agent orders tea; a trained model picks its actions. usage: node examples/agent.js MODEL [CHECKPOINT] */
import { ModelSet, runAgent } from '@boq/native';

const [path, embedder = 'models/tiny'] = process.argv.slice(2);
const models = new ModelSet({ embedder });
const { run, record } = await runAgent({
  url: new URL('pages/tea-shop.html', import.meta.url).href,
  task: 'Select Green tea and Lemon, enter "Ada" into the field Name, and click Order.',
  successText: 'Thank you, Ada: Green tea, Lemon.',
  selector: 'best-of-q@margin=0.1',
  model: await models.open(path),
  n: 3,
  maxSteps: 8,
  out: 'runs/example-agent',
  onEvent: (event) => {
    if (event.type === 'step') console.log(event.record.result.message);
  },
});
console.log(`${record.outcome} after ${record.steps} steps, recorded in ${run}`);
await models.dispose();
