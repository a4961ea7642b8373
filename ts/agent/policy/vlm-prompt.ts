/**
 * What a vision-language model is told: who it is, what it can do, how to answer; then the task, what was done, and
 * the page. What comes from pages is fenced, and said to be data. Any change of the words is a new `vlmPromptVersion`.
 */

import { describeStep } from '../../learning/templates.js';
import type { Json } from '../../store/types.js';
import type { ActionRegistry } from '../actions/registry.js';
import type { Observation, PageElement, ProposeRequest, Screenshot } from '../types.js';
import { type ChatMessage, type Fence, type JsonSchema, type Part, say } from '../vlm/index.js';

export const vlmPromptVersion = 'v1';

export interface PromptSettings {
  actions: ActionRegistry;
  /** Screenshots shown at most, the present one included. */
  screenshots: number;
  /** Whether the page's elements are listed; without, the model describes what it sees. */
  elements: boolean;
  /** Names of secrets that may be typed as {{name}}. */
  secretNames: readonly string[];
  /** Today, as the model is told. */
  now: () => Date;
}

/** How much is shown; each level leaves out more. The task and the present screenshot are never left out. */
interface Extent {
  earlierScreenshots: number;
  steps: number;
  elements: number;
}

const extents: readonly Extent[] = [
  { earlierScreenshots: Number.MAX_SAFE_INTEGER, steps: 30, elements: 200 },
  { earlierScreenshots: 1, steps: 30, elements: 200 },
  { earlierScreenshots: 0, steps: 30, elements: 120 },
  { earlierScreenshots: 0, steps: 12, elements: 80 },
  { earlierScreenshots: 0, steps: 5, elements: 40 },
  { earlierScreenshots: 0, steps: 2, elements: 15 },
  { earlierScreenshots: 0, steps: 1, elements: 0 },
];

/** Longest text of one element in the list. */
const elementLimit = 160;

/** The messages of one step at a level of shortness; null beyond the shortest. */
export function stepMessages(
  request: ProposeRequest,
  settings: PromptSettings,
  { level, fence }: { level: number; fence: Fence },
): ChatMessage[] | null {
  const extent = extents[level];
  if (!extent) return null;
  return [
    say('system', systemText(request, settings, fence)),
    { role: 'user', content: situation(request, settings, extent, fence) },
  ];
}

/** Schema of the answer: one candidate, or a list of them. */
export function answerSchema({ n, mustAnswer }: ProposeRequest, actions: ActionRegistry): JsonSchema {
  const definitions = actions.definitions.filter(({ type }) => !mustAnswer || type === 'answer');
  const candidate: { [key: string]: Json } = {
    type: 'object',
    properties: {
      thought: { type: 'string' },
      note: { type: 'string' },
      action: { anyOf: definitions.map(({ schema }) => schema) },
    },
    required: ['thought', 'note', 'action'],
    additionalProperties: false,
  };
  if (n === 1) return candidate;
  return {
    type: 'object',
    properties: { candidates: { type: 'array', items: candidate } },
    required: ['candidates'],
    additionalProperties: false,
  };
}

/** Said after an answer that could not be used, or not all of it. */
export function repairMessages(said: string, faults: readonly string[], missing: number): ChatMessage[] {
  const list = faults.map((fault) => `- ${fault}`).join('\n');
  const wanted = missing === 1 ? 'one candidate' : `${missing} candidates`;
  const text = `That cannot be used:\n${list}\nAnswer again in the form described above, with ${wanted}, correct and complete. Nothing but the JSON.`;
  return [...(said.trim() ? [say('assistant', said)] : []), say('user', text)];
}

function systemText(
  { n, mustAnswer }: ProposeRequest,
  { actions, secretNames, elements, now }: PromptSettings,
  fence: Fence,
): string {
  const definitions = actions.definitions.filter(({ type }) => !mustAnswer || type === 'answer');
  const list = definitions.map(
    ({ type, description, schema }) => `- ${type}: ${description}\n  ${JSON.stringify(formOf(schema))}`,
  );
  const naming = elements
    ? 'Name an element by its description from the list of elements, word for word; if what you need is not listed, describe it by its kind, its visible text and its place.'
    : 'Describe an element by its kind, its visible text and its place, so that someone who sees the screenshot finds it at once.';
  return [
    'You operate a web browser for a person, one action at a time. Each turn shows you the task, the steps so far, and the page as it is now. Decide what to do next.',
    `Today is ${now().toISOString().slice(0, 10)}.`,
    `ACTIONS\n${list.join('\n')}`,
    [
      'RULES',
      `- ${naming}`,
      '- Read the result of the last step first. What did not work will not work the same way again.',
      '- Close what covers the page (cookie notices, pop-ups) before you go on. Write into a field directly; it need not be clicked before.',
      '- When the task asks for something on the page, note what you find, so that later steps know it.',
      '- Use answer as soon as the task is done, or when it cannot be done, and say which. State only what you have seen.',
      ...(secretNames.length > 0
        ? [
            `- Secrets are written by name and never shown: ${secretNames.map((name) => `{{${name}}}`).join(', ')}.`,
          ]
        : []),
      ...(mustAnswer
        ? ['- No step is left: give the best answer to the task that what you know allows.']
        : []),
    ].join('\n'),
    `PAGE TEXT\n${fence.rule}`,
    n === 1 ? oneForm : listForm(n),
  ].join('\n\n');
}

const fields =
  '"thought" says in a sentence or two why this action, from what you see; "note" keeps facts that later steps need, or is empty; "action" is one of the actions above.';

const oneForm = `ANSWER\nOne JSON object and nothing else: {"thought": "...", "note": "...", "action": {...}}. ${fields}`;

function listForm(n: number): string {
  return (
    `ANSWER\nOne JSON object and nothing else: {"candidates": [{"thought": "...", "note": "...", "action": {...}}, ...]}, with ` +
    `${n} candidates for this one next step, the most promising first. ${fields} ` +
    'Each candidate is an alternative to the others, not a step after them. Think about each as if it were the only one, and let them differ in ' +
    'what they do: another kind of action, another element, another way to the goal. Never offer the same action twice.'
  );
}

/** An action by example of its arguments. */
function formOf(schema: { [key: string]: Json }): Json {
  const properties = (schema['properties'] ?? {}) as { [name: string]: { [key: string]: Json } };
  return Object.fromEntries(
    Object.entries(properties).map(([name, property]) => {
      if ('const' in property) return [name, property['const']!];
      if (Array.isArray(property['enum'])) return [name, property['enum'].join(' | ')];
      const type = property['type'];
      return [name, type === 'boolean' ? 'true | false' : type === 'number' ? 'a number' : '...'];
    }),
  );
}

function situation(
  { instruction, history, observation }: ProposeRequest,
  { screenshots, elements }: PromptSettings,
  extent: Extent,
  fence: Fence,
): Part[] {
  const text = (words: string): Part => ({ type: 'text', text: words });
  const shownFrom = Math.max(0, history.length - extent.steps);
  const steps = history.slice(shownFrom).map((entry, i) => `${shownFrom + i + 1}. ${describeStep(entry)}`);
  const omission = shownFrom > 0 ? [`(steps 1 to ${shownFrom} are left out)`] : [];
  const earlier = earlierScreenshots(history, Math.min(screenshots - 1, extent.earlierScreenshots));
  const limit = elements ? extent.elements : 0;
  return [
    text(`TASK\n${instruction}`),
    text(
      steps.length === 0
        ? 'STEPS SO FAR\nnone'
        : `STEPS SO FAR\n${fence.around([...omission, ...steps].join('\n'))}`,
    ),
    ...earlier.flatMap(({ step, screenshot }) => [
      text(`The page before step ${step}:`),
      { type: 'image', screenshot } as const,
    ]),
    text('The page now:'),
    { type: 'image', screenshot: observation.screenshot },
    text(`THE PAGE NOW, IN WORDS\n${fence.around(pageWords(observation, limit))}`),
  ];
}

function earlierScreenshots(
  history: ProposeRequest['history'],
  count: number,
): { step: number; screenshot: Screenshot }[] {
  const all = history.flatMap(({ screenshot }, index) =>
    screenshot ? [{ step: index + 1, screenshot }] : [],
  );
  return count > 0 ? all.slice(-count) : [];
}

function pageWords({ url, title, tabs, scroll, events, elements }: Observation, limit: number): string {
  const lines = [`address: ${url}`, `title: ${title}`];
  if (tabs.length > 1) {
    const names = tabs.map((tab, i) => `${i + 1}. ${tab.title || tab.url}${tab.active ? ' (in front)' : ''}`);
    lines.push(`tabs: ${names.join('; ')}`);
  }
  const ways = [
    ...(scroll.y > 0 ? ['up'] : []),
    ...(scroll.y < scroll.maxY ? ['down'] : []),
    ...(scroll.x > 0 ? ['left'] : []),
    ...(scroll.x < scroll.maxX ? ['right'] : []),
  ];
  if (ways.length > 0) lines.push(`more of the page lies: ${ways.join(', ')}`);
  for (const event of events) lines.push(`since the last step: ${event}`);
  const shown = elements.slice(0, limit).map((element) => `- ${elementWords(element)}`);
  if (shown.length > 0) lines.push('elements:', ...shown);
  const left = elements.length - shown.length;
  if (limit > 0 && left > 0) lines.push(`(${left} more elements are on the page)`);
  return lines.join('\n');
}

function elementWords({
  description,
  value,
  checked,
  selected,
  expanded,
  disabled,
  options,
}: PageElement): string {
  const states = [
    ...(value ? [`holds "${value}"`] : []),
    ...(checked === null ? [] : [checked ? 'checked' : 'not checked']),
    ...(selected ? ['selected'] : []),
    ...(expanded === null ? [] : [expanded ? 'open' : 'closed']),
    ...(disabled ? ['disabled'] : []),
    ...(options.length > 0 ? [`options: ${options.join(' | ')}`] : []),
  ];
  const words = [description, ...states].join('; ').replace(/\s+/g, ' ');
  return words.length <= elementLimit ? words : `${words.slice(0, elementLimit)}…`;
}
