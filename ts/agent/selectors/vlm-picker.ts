/**
 * The paper's picker (Fig. 11) asked of a model: a second call reads the whole conversation, sees the page, and names
 * one of the numbered candidates with its reason.
 */
import { describeAction, describeStep } from '../../learning/templates.js';
import type { Candidate } from '../../store/types.js';
import type { SelectRequest } from '../types.js';
import {
  type ChatClient,
  type ChatMessage,
  complete,
  Fence,
  type JsonSchema,
  objectOf,
  say,
} from '../vlm/index.js';
import type { Picker } from './picker.js';

export const pickerPromptVersion = 'v1';

const schema: JsonSchema = {
  type: 'object',
  properties: { reason: { type: 'string' }, choice: { type: 'integer' } },
  required: ['reason', 'choice'],
  additionalProperties: false,
};

/** Steps shown, by level of shortness. */
const shownSteps = [Number.MAX_SAFE_INTEGER, 12, 4, 1];

/** Calls for one choice: an answer that names no candidate is asked for once more. */
const calls = 2;

/**
 * Where no candidate is named in two calls, the first is taken, and the reason says so.
 * @param client the model that judges
 */
export function vlmPicker(client: ChatClient): Picker {
  return {
    name: `${client.model}, prompt ${pickerPromptVersion}`,
    pick: async (request) => {
      const { candidates, signal } = request;
      const fence = new Fence(request.random);
      const usage = [];
      let repair: ChatMessage[] = [];
      let fault = '';
      for (let call = 0; call < calls; call++) {
        const answer = await complete(client, {
          purpose: 'picker',
          messages: (level) => {
            const messages = pickerMessages(request, fence, level);
            return messages && [...messages, ...repair];
          },
          schema: { name: 'choice', schema },
          temperature: 0,
          signal,
        });
        usage.push(...answer.usage);
        const { choice, reason } = objectOf(answer.text) ?? {};
        const index = Number(choice) - 1;
        if (Number.isInteger(index) && index in candidates) {
          return { index, reason: typeof reason === 'string' ? reason : 'no reason given', usage };
        }
        fault = answer.message || `expected the number of a candidate, 1 to ${candidates.length}`;
        const again = say(
          'user',
          `That names no candidate: ${fault}. Answer again with the JSON object alone.`,
        );
        repair = [...(answer.text.trim() ? [say('assistant', answer.text.slice(0, 2000))] : []), again];
      }
      return { index: 0, reason: `the picker named no candidate (${fault}): the first is taken`, usage };
    },
  };
}

function pickerMessages(request: SelectRequest, fence: Fence, level: number): ChatMessage[] | null {
  const shown = shownSteps[level];
  if (shown === undefined) return null;
  const { instruction, history, candidates, screenshot } = request;
  const from = Math.max(0, history.length - shown);
  const steps = history.slice(from).map((entry, i) => `${from + i + 1}. ${describeStep(entry)}`);
  const list = candidates.map((candidate, i) => `${i + 1}. ${candidateText(candidate)}`);
  return [
    say('system', `${role}\n\nPAGE TEXT\n${fence.rule}`),
    {
      role: 'user',
      content: [
        { type: 'text', text: `TASK\n${instruction}` },
        {
          type: 'text',
          text: steps.length ? `STEPS SO FAR\n${fence.around(steps.join('\n'))}` : 'STEPS SO FAR\nnone',
        },
        { type: 'text', text: 'The page now:' },
        { type: 'image', screenshot },
        { type: 'text', text: `CANDIDATES\n${fence.around(list.join('\n'))}` },
      ],
    },
  ];
}

const role = [
  'A web agent works on a task step by step. Several candidates for its next step lie before you; exactly one will be carried out. Choose the one that brings the task furthest.',
  'Weigh what the page shows against what each candidate claims. Prefer one that makes progress over one that repeats what did not work, a step that can be undone over a wrong one that cannot, and an answer only if the task is truly done. The order of the candidates means nothing.',
  'Answer with one JSON object and nothing else: {"reason": "one or two sentences", "choice": the number of the candidate}.',
].join('\n');

function candidateText({ action, thought, note }: Candidate): string {
  const parts = [describeAction(action)];
  if (thought.trim()) parts.push(`thought: ${thought.replace(/\s+/g, ' ').trim()}`);
  if (note.trim()) parts.push(`note: ${note.replace(/\s+/g, ' ').trim()}`);
  return parts.join('; ');
}
