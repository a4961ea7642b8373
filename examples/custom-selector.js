/** A selector of one's own: never twice the same action. usage: node examples/custom-selector.js */
import { describeAction, runAgent } from '@boq/native';

const untried = {
  name: 'untried',
  candidateCount: (n) => n,
  needsScores: false, // with true, `scores` below holds Q and V of a trained model
  select: ({ candidates, history }) => {
    const tried = new Set(history.map(({ action }) => describeAction(action)));
    const index = candidates.findIndex(({ action }) => !tried.has(describeAction(action)));
    return { selector: 'untried', index: Math.max(index, 0), reason: 'the first that was not tried' };
  },
};
const { record } = await runAgent({
  url: new URL('pages/tea-shop.html', import.meta.url).href,
  task: 'Select Green tea and Lemon, enter "Ada" into the field Name, and click Order.',
  successText: 'Thank you, Ada: Green tea, Lemon.',
  selector: untried,
  maxSteps: 8,
  out: 'runs/example-selector',
  onEvent: (event) => {
    if (event.type === 'step') console.log(event.record.result.message);
  },
});
console.log(`${record.outcome} with ${record.key.selector}`);
