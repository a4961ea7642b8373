/** A proposer of one's own: another's candidates, and one more. usage: node examples/custom-proposer.js */
import { createPolicy, runAgent } from '@boq/native';

const page = createPolicy('page');
const withScroll = {
  name: 'page+scroll',
  async *propose(request) {
    yield* page.propose({ ...request, n: Math.max(1, request.n - 1) });
    if (request.n === 1) return;
    const action = { type: 'scroll', direction: 'down' };
    yield { type: 'candidate', candidate: { action, thought: 'there may be more below', note: '' } };
  },
};
const { record } = await runAgent({
  url: new URL('pages/tea-shop.html', import.meta.url).href,
  task: 'Select Green tea and Lemon, enter "Ada" into the field Name, and click Order.',
  successText: 'Thank you, Ada: Green tea, Lemon.',
  policy: withScroll,
  selector: 'first',
  maxSteps: 8,
  out: 'runs/example-proposer',
  onEvent: (event) => {
    if (event.type === 'decided') console.log(event.candidates.map(({ action }) => action.type).join(', '));
  },
});
console.log(`${record.outcome} with ${record.key.policy}`);
