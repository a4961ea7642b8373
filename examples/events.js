/** The agent as a stream of events, with hooks, a signal and a budget. usage: node examples/events.js */
import { agentEvents, Budget } from '@boq/native';

const events = agentEvents({
  url: new URL('pages/tea-shop.html', import.meta.url).href,
  task: 'Select Green tea and Lemon, enter "Ada" into the field Name, and click Order.',
  successText: 'Thank you, Ada: Green tea, Lemon.',
  selector: 'first',
  maxSteps: 8,
  out: 'runs/example-events',
  signal: AbortSignal.timeout(60_000),
  budget: new Budget({ maxCalls: 100, maxUsd: 1 }),
  beforeAction: async ({ action }) => !/pay|delete/i.test(action.element ?? ''), // false: not done, and the end
  afterStep: async ({ result }) => console.log(`  ${result.message}`),
});
for await (const event of events) {
  if (event.type === 'decided')
    console.log(`${event.candidates.length} candidates: ${event.selection.reason}`);
  if (event.type === 'end') console.log(`${event.result.outcome} after ${event.result.steps} steps`);
}
