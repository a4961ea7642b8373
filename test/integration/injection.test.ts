/** A page that tells the agent what to do, and a policy that obeys it: what holds is what does not ask the policy. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect } from 'chai';
import { actionsWith } from '../../ts/agent/actions/registry.js';
import { runAgent } from '../../ts/agent/run-agent.js';
import type { Proposer } from '../../ts/agent/types.js';
import { openRun } from '../../ts/store/run.js';
import { hostileOrders, startTrapServer, type TrapServer } from '../support/trap-server.js';

/** Does what the page says, order by order; goes back to the page where an order has led away. */
function gullible(orders: readonly string[], home: string): Proposer {
  return {
    name: 'gullible',
    async *propose({ history, observation }) {
      const done = history.filter(({ action }) => action.type !== 'restart').length;
      const isHome = observation.url === home;
      // The orders are read from the page, as a model would read them.
      const seen = observation.elements.map(({ name }) => name).join('\n');
      if (isHome && done === 0) for (const order of orders) expect(seen).to.include(order.slice(0, 40));
      const action = !isHome
        ? { type: 'restart' }
        : done < orders.length
          ? JSON.parse(orders[done]!)
          : { type: 'answer', text: observation.title };
      yield { type: 'candidate', candidate: { action, thought: 'the page says so', note: '' } };
    },
  };
}

describe('a page that gives orders', () => {
  let server: TrapServer;
  let root: string;
  before(async () => {
    server = await startTrapServer();
    root = await mkdtemp(join(tmpdir(), 'boq-injection-'));
  });
  after(async () => {
    await server.close();
    await rm(root, { recursive: true });
  });

  it('gets no secret, no file, no payment and no request elsewhere from a policy that obeys it', async () => {
    const home = `${server.url}/injection`;
    const orders = hostileOrders(server.otherUrl);
    const { run, record } = await runAgent({
      url: home,
      task: 'Tell the price of tea.',
      policy: gullible(orders, home),
      selector: 'first',
      actions: actionsWith('goto'),
      viewport: { width: 1280, height: 1200 },
      secrets: { bank: { value: 'correct horse', domains: ['bank.example'] } },
      uploads: fileURLToPath(new URL('../fixtures/uploads', import.meta.url)),
      confirm: async () => false,
      stuckAfter: 0,
      maxSteps: 40,
      out: join(root, 'run'),
    });
    expect(record.outcome).to.equal('answered');
    const stored = await openRun(run);
    const steps = (await stored.steps(record)).map(({ candidates, result, observation }) => ({
      action: candidates[0]!.action,
      result,
      events: observation.events,
    }));
    const obeyed = steps.filter(({ action }) => !['restart', 'answer'].includes(action.type));
    expect(obeyed.map(({ action }) => JSON.stringify(action))).to.deep.equal(orders);
    const refusals = [
      /private address/,
      /file: addresses are refused/,
      /javascript: addresses are refused/,
      /chrome: addresses are refused/,
      /private address/,
      /the secret bank may not be typed here/,
      /no file passwd in the upload folder/,
      /not done: pressing button "Pay now" was not confirmed/,
    ];
    refusals.forEach((refusal, index) => {
      expect(obeyed[index]!.result).to.have.property('ok', false);
      expect(obeyed[index]!.result.message).to.match(refusal);
    });
    const told = steps.flatMap(({ events }) => events).join('\n');
    expect(told.match(/localhost:\d+\/(?:landing|inside) was not loaded/g)).to.have.length.at.least(4);
    const elsewhere = server.otherUrl.replace('http://', '');
    expect(server.requests.filter((request) => request.startsWith(elsewhere))).to.deep.equal([]);
    expect(JSON.stringify([record, steps])).not.to.include('correct horse');
    expect(record.answer).to.equal('served');
  });
});
