/**
 * A vision-language model as policy. It is shown the step and asked for N candidates; each is checked and handed on
 * while the next is still being written. What cannot be used is told to the model, and asked for again a bounded
 * number of times.
 */
import { BoqError } from '../../core/errors.js';
import type { Candidate } from '../../store/types.js';
import { ActionRegistry } from '../actions/registry.js';
import type { ProposalEvent, ProposeRequest, Proposer } from '../types.js';
import { type ChatClient, type ChatMessage, Fence, renderMessages } from '../vlm/index.js';
import { CandidateReader } from './candidate-reader.js';
import { eager } from './eager.js';
import {
  answerSchema,
  type PromptSettings,
  repairMessages,
  stepMessages,
  vlmPromptVersion,
} from './vlm-prompt.js';

/** `list`: all candidates in one answer; `samples`: independent answers of one; `union`: half and half. */
export const proposalStyles = ['list', 'samples', 'union'] as const;
export type ProposalStyle = (typeof proposalStyles)[number];

export interface VlmPolicyOptions extends Partial<PromptSettings> {
  client: ChatClient;
  /** Of the model's answers; default 0.7. */
  temperature?: number;
  /** How N candidates come about; default list. */
  proposals?: ProposalStyle;
  /** Calls that may follow one whose candidates could not all be used; default 2. */
  repairs?: number;
}

/** Of an answer that is shown to the model again. */
const longestQuote = 4000;

export class VlmPolicy implements Proposer {
  readonly name: string;
  readonly #client: ChatClient;
  readonly #prompt: PromptSettings;
  readonly #temperature: number;
  readonly #proposals: ProposalStyle;
  readonly #repairs: number;

  /** @throws BOQ_INVALID_ARGUMENT for a temperature below 0 or no screenshot to show */
  constructor(options: VlmPolicyOptions) {
    const {
      client,
      temperature = 0.7,
      proposals = 'list',
      repairs = 2,
      screenshots = 3,
      elements = true,
    } = options;
    if (!(temperature >= 0) || !(screenshots >= 1)) {
      throw new BoqError(
        'BOQ_INVALID_ARGUMENT',
        `Expected a temperature of at least 0 and at least 1 screenshot for a model, got ${temperature} and ${screenshots}.`,
      );
    }
    const { actions = new ActionRegistry(), secretNames = [], now = () => new Date() } = options;
    this.#client = client;
    this.#prompt = { actions, screenshots, elements, secretNames, now };
    this.#temperature = temperature;
    this.#proposals = proposals;
    this.#repairs = repairs;
    const settings = [
      `prompt ${vlmPromptVersion}`,
      `T=${temperature}`,
      ...(proposals === 'list' ? [] : [proposals]),
      ...(screenshots === 3 ? [] : [`${screenshots} screenshots`]),
      ...(elements ? [] : ['no elements']),
      ...(repairs === 2 ? [] : [`${repairs} repairs`]),
    ];
    this.name = `vlm ${client.model} (${settings.join(', ')})`;
  }

  /** The messages of the first call and the form of its answer. */
  preview(request: ProposeRequest): string {
    const [first] = this.#shares(request.n);
    const asked = { ...request, n: first ?? 1 };
    const messages = stepMessages(asked, this.#prompt, { level: 0, fence: new Fence(request.random) }) ?? [];
    const { label, format } = this.#client.settings;
    const schema = JSON.stringify(answerSchema(asked, this.#prompt.actions), null, 2);
    const head = `To ${this.#client.model} at ${label}, ${this.#shares(request.n).length} call(s), answer as ${format}`;
    return `${head}\n\n${renderMessages(messages)}\n\n--- schema of the answer\n${schema}`;
  }

  /**
   * @throws BOQ_VLM_*, BOQ_TIMEOUT where the model cannot be asked, BOQ_ABORTED
   */
  async *propose(request: ProposeRequest): AsyncGenerator<ProposalEvent> {
    const fence = new Fence(request.random);
    const offered = new Map<string, number>();
    const stop = new AbortController();
    const signal = request.signal ? AbortSignal.any([request.signal, stop.signal]) : stop.signal;
    const asks = this.#shares(request.n).map((n) => eager(this.#ask({ ...request, n, signal }, fence)));
    try {
      // One answer after the other, however they arrive: the order of candidates must not depend on the network.
      for (const ask of asks) {
        for await (const event of ask)
          yield event.type === 'candidate' ? once(event.candidate, offered) : event;
      }
    } finally {
      stop.abort();
    }
  }

  /** How many candidates each call is asked for. */
  #shares(n: number): number[] {
    if (n === 1 || this.#proposals === 'list') return [n];
    const listed = this.#proposals === 'union' ? Math.ceil(n / 2) : 1;
    return [listed, ...new Array<number>(n - listed).fill(1)];
  }

  /** One conversation: the question, and as many repairs as are needed and allowed. */
  async *#ask(request: ProposeRequest, fence: Fence): AsyncGenerator<ProposalEvent> {
    const { n, signal } = request;
    const { actions } = this.#prompt;
    let repair: ChatMessage[] = [];
    let valid = 0;
    for (let round = 0; round <= this.#repairs; round++) {
      const reader = new CandidateReader();
      const faults: string[] = [];
      const check = (values: unknown[]): ProposalEvent[] =>
        values.slice(0, n - valid).map((value) => {
          const read = this.#check(actions, value, request);
          if ('error' in read) {
            faults.push(read.error.message);
            return { type: 'error', ...read };
          }
          valid++;
          return { type: 'candidate', ...read };
        });
      const answer = this.#client.chat({
        purpose: 'policy',
        messages: (level) => {
          const messages = stepMessages(request, this.#prompt, { level, fence });
          return messages && [...messages, ...repair];
        },
        schema: { name: n === 1 ? 'candidate' : 'candidates', schema: answerSchema(request, actions) },
        temperature: this.#temperature,
        signal,
      });
      for await (const event of answer) {
        if (event.type === 'text') yield* check(reader.push(event.text));
        else if (event.type === 'usage') yield event;
        else {
          yield* check(reader.end());
          const fault = this.#faultOf(event, valid, faults);
          if (fault === null) continue;
          faults.push(fault);
          yield {
            type: 'error',
            error: { code: 'BOQ_CANDIDATE_INVALID', message: fault, raw: quote(reader.text, 500) },
          };
        }
      }
      if (valid >= n || faults.length === 0) return;
      repair = repairMessages(quote(reader.text, longestQuote), faults, n - valid);
    }
  }

  #check(actions: ActionRegistry, value: unknown, { mustAnswer }: ProposeRequest) {
    const read = actions.parseCandidate(value);
    if (!mustAnswer || 'error' in read || read.candidate.action.type === 'answer') return read;
    const raw = quote(JSON.stringify(value), 500);
    return {
      error: { code: 'BOQ_CANDIDATE_INVALID', message: 'no step is left: expected the action "answer"', raw },
    };
  }

  /** What is wrong with an answer as a whole; null where nothing is, or its candidates have said so. */
  #faultOf(
    { reason, message }: { reason: string; message: string },
    valid: number,
    faults: readonly string[],
  ) {
    if (reason !== 'stop') return message;
    return valid === 0 && faults.length === 0
      ? 'no JSON object with thought, note and action was found'
      : null;
  }
}

/** The same action offered again is recorded, and not offered twice. */
function once(candidate: Candidate, offered: Map<string, number>): ProposalEvent {
  const { action } = candidate;
  const text = JSON.stringify(Object.entries(action).sort(([a], [b]) => (a < b ? -1 : 1)));
  const earlier = offered.get(text);
  if (earlier === undefined) {
    offered.set(text, offered.size + 1);
    return { type: 'candidate', candidate };
  }
  const message = `the same action as candidate ${earlier}`;
  return {
    type: 'error',
    error: { code: 'BOQ_CANDIDATE_INVALID', message, raw: quote(JSON.stringify(candidate), 500) },
  };
}

function quote(text: string, length: number): string {
  return text.length <= length ? text : `${text.slice(0, length)}…`;
}
