/** A picker of one's own: a second judgement chooses among the candidates. usage: node examples/custom-picker.js */
import { describeAction, pickerSelector, runAgent } from '@boq/native';

const shortest = {
  name: 'shortest',
  // `screenshot`, `history` and `instruction` are there for a model to read; `usage` would tell what it cost.
  pick: async ({ candidates, history }) => {
    const done = new Set(history.map(({ action }) => describeAction(action)));
    const words = candidates.map(({ action }) => describeAction(action));
    const fresh = words.filter((text) => !done.has(text)).sort((a, b) => a.length - b.length);
    return { index: Math.max(words.indexOf(fresh[0]), 0), reason: 'the shortest that was not done yet' };
  },
};
const { record } = await runAgent({
  url: new URL('pages/tea-shop.html', import.meta.url).href,
  task: 'Select Green tea and Lemon, enter "Ada" into the field Name, and click Order.',
  successText: 'Thank you, Ada: Green tea, Lemon.',
  selector: pickerSelector(shortest),
  maxSteps: 4,
  out: 'runs/example-picker',
});
console.log(`${record.outcome} after ${record.steps} steps with ${record.key.selector}`);
