/**
 * What the compiler must know about the public API. Nothing here runs: the type check of the whole project is the
 * test, and a line marked as an error fails it when it is none.
 */
import {
  type ActionDefinition,
  ActionRegistry,
  type BoqError,
  type BoqErrorCode,
  type bestOfQ,
  collect,
  createPolicy,
  Embedder,
  evaluate,
  type Interval,
  isBoqError,
  ModelSet,
  type NativeScores,
  type Proposer,
  QCritic,
  runAgent,
  Scorer,
  type Selector,
  standardActions,
  train,
  writeReport,
} from '../../ts/index.js';

/** True where both types are the same, and neither is `any`. */
type Same<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;
function expectSame<A, B>(_same: Same<A, B>): void {}

// Results
export async function results(): Promise<void> {
  const collected = await collect({
    benchmark: 'miniwob',
    tasks: ['@demo-train'],
    seeds: { from: 0, to: 9 },
    out: 'r',
  });
  expectSame<typeof collected.successRate, number>(true);
  const trained = await train({ data: ['r'], out: 'm', preset: 'paper', config: { tau: 0.7 } });
  expectSame<typeof trained.summary.stopped, boolean>(true);
  const evaluated = await evaluate({
    benchmark: 'miniwob',
    tasks: ['click-button'],
    seeds: { from: 20_000, to: 20_010 },
    selectors: ['prompting', 'best-of-q@margin=auto'],
    out: 'e',
  });
  const summary = evaluated.results?.selectors['best-of-q'];
  expectSame<NonNullable<typeof summary>['interval'], Interval | null>(true);
  const agent = await runAgent({ url: 'https://example.org', task: 'Find the price.', out: 'a' });
  expectSame<typeof agent.record.answer, string | null>(true);
  const report = await writeReport({ paths: ['e'], out: 'report.html' });
  expectSame<typeof report.path, string>(true);
}

// Embedding and scoring
export async function models(): Promise<void> {
  await using embedder = await Embedder.load({ path: 'models/tiny', dtype: 'float32' });
  const { vectors } = await embedder.embed([{ prompt: ['text'] }]);
  expectSame<typeof vectors, Float32Array>(true);
  await using scorer = await Scorer.load({ path: 'm' });
  expectSame<ReturnType<typeof scorer.score>, Promise<NativeScores>>(true);
  const critic = new QCritic(embedder, scorer, 'm');
  await using set = new ModelSet({ embedder: 'models/tiny' });
  const model = await set.open('m');
  await runAgent({ url: 'about:blank', task: 't', out: 'a', model: { critic, id: 'mine' } });
  await runAgent({ url: 'about:blank', task: 't', out: 'a', model });
  // @ts-expect-error an unknown dtype
  await Embedder.load({ path: 'models/tiny', dtype: 'int4' });
  // @ts-expect-error no path
  await Scorer.load({ device: 'cpu' });
  // @ts-expect-error made by load() only
  new Scorer();
}

// One's own parts
const selector: Selector = {
  name: 'last',
  candidateCount: (n) => n,
  needsScores: false,
  select: ({ candidates, scores }) => {
    expectSame<NonNullable<typeof scores>['q'], number[]>(true);
    return { selector: 'last', index: candidates.length - 1, reason: 'the last' };
  },
};
const proposer: Proposer = {
  name: 'mine',
  async *propose(request) {
    yield* createPolicy('page').propose(request);
    yield { type: 'candidate', candidate: { action: { type: 'wait' }, thought: '', note: '' } };
  },
};
const action: ActionDefinition = {
  type: 'open',
  description: 'Go to an address.',
  schema: { type: 'object' },
  needsPoint: false,
  execute: async (surface, { url }) => {
    const fault = await surface.goto(String(url));
    return { ok: fault === null, message: fault ?? 'opened' };
  },
};
export const own = {
  url: 'about:blank',
  task: 't',
  out: 'a',
  selector,
  policy: proposer,
  actions: new ActionRegistry([...standardActions, action]),
} satisfies Parameters<typeof runAgent>[0];
expectSame<ReturnType<typeof bestOfQ>, Selector>(true);
// @ts-expect-error a selector must say whether it needs scores
export const incomplete: Selector = { name: 'x', candidateCount: () => 1, select: selector.select };

// Errors
export function handle(error: unknown): BoqErrorCode | undefined {
  if (isBoqError(error, 'BOQ_ABORTED')) {
    expectSame<typeof error, BoqError>(true);
    return error.code;
  }
  // @ts-expect-error no such code
  isBoqError(error, 'BOQ_NO_SUCH_CODE');
  return undefined;
}
