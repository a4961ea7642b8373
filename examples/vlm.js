/** A model proposes, a second look picks. usage: node examples/vlm.js; BOQ_VLM_ENDPOINT and BOQ_VLM_MODEL say which model. */
import { Budget, runAgent } from '@boq/native';

const budget = new Budget({ maxCalls: 40, maxMinutes: 10 });
const { record } = await runAgent({
  url: new URL('pages/tea-shop.html', import.meta.url).href,
  task: 'Select Green tea and Lemon, enter "Ada" into the field Name, and click Order.',
  successText: 'Thank you, Ada: Green tea, Lemon.',
  policy: 'vlm',
  // Waits and retries, and what the endpoint refuses, in a sentence each.
  vlm: { proposals: 'list', hooks: { onNotice: (notice) => console.error(notice) } },
  localizer: 'page',
  selector: 'vlm-picker',
  n: 3,
  maxSteps: 8,
  budget,
  out: 'runs/example-vlm',
});
const { calls, tokens } = budget.spent;
console.log(`${record.outcome} after ${record.steps} steps, ${calls} calls, ${tokens} tokens`);
