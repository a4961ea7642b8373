/** Everything that could be done next, each with its facts. */
import type { Action } from '../../store/types.js';
import type { PageElement } from '../types.js';
import { clickFacts, type Fact } from './facts.js';
import { holds, isField } from './fields.js';
import { isChoice, isChosen, isSubmit, type Situation, timesClicked } from './situation.js';

export interface Option {
  action: Action;
  facts: Fact[];
  score: number;
}

const option = (action: Action, facts: Fact[]): Option => ({
  action,
  facts,
  score: facts.reduce((sum, { weight }) => sum + weight, 0),
});

function writeOptions(element: PageElement, situation: Situation): Option[] {
  const { fields, instruction, observation, history } = situation;
  const assigned = fields.get(element.id);
  if (!isField(element) || !assigned) return [];
  const facts: Fact[] = [
    assigned.labelled
      ? { phrase: 'a field whose value the task gives with its label', weight: 5 }
      : { phrase: 'a field for a value that the task gives', weight: 4.5 },
  ];
  if (holds(element, assigned.value, instruction))
    facts.push({ phrase: 'holding that value already', weight: -7 });
  else if (element.value !== '') facts.push({ phrase: 'holding something else', weight: 0.2 });
  const written = history.filter(
    ({ action, result }) =>
      result.ok &&
      action.type === 'write' &&
      action.element === element.description &&
      action.text === assigned.value,
  ).length;
  if (written > 0) facts.push({ phrase: 'written into before', weight: -2 * Math.min(written, 3) });
  const write = (submit: boolean): Action => ({
    type: 'write',
    element: element.description,
    text: assigned.value,
    submit,
  });
  const enter: Fact = observation.elements.some(isSubmit)
    ? { phrase: 'pressing Enter where there is a submit button', weight: -2 }
    : situation.emptyFields > 1
      ? { phrase: 'pressing Enter with other fields empty', weight: -3 }
      : { phrase: 'pressing Enter as there is no submit button', weight: -0.5 };
  return [option(write(false), facts), option(write(true), [...facts, enter])];
}

function listOptions(element: PageElement, situation: Situation): Option[] {
  const wanted = situation.options.get(element.id) ?? [];
  // Longer names first: "New York" contains "York".
  return [...wanted]
    .sort((a, b) => b.length - a.length)
    .map((text) =>
      option({ type: 'write', element: element.description, text, submit: false }, [
        { phrase: 'a list with an option that the task names', weight: 5 },
      ]),
    );
}

function scrollOptions(situation: Situation): Option[] {
  const { instruction, observation, missing, history } = situation;
  const { y, maxY } = observation.scroll;
  const options: Option[] = [];
  for (const direction of ['down', 'up'] as const) {
    const more = direction === 'down' ? y < maxY - 1 : y > 1;
    const facts: Fact[] = [];
    if (instruction.scroll === direction) {
      facts.push(
        more
          ? { phrase: 'scrolling as the task asks', weight: 5 }
          : { phrase: 'at the end that the task asks for', weight: -5 },
      );
    } else if (!more) continue;
    else {
      facts.push({ phrase: 'with more of the page that way', weight: direction === 'down' ? 0 : -1 });
      if (missing.length > 0)
        facts.push({ phrase: 'while something that the task names is not shown', weight: 2.5 });
    }
    if (direction === 'up' && history.at(-1)?.action.type === 'scroll' && instruction.scroll !== 'up') {
      facts.push({ phrase: 'scrolled the other way just now', weight: -1 });
    }
    options.push(option({ type: 'scroll', direction }, facts));
  }
  return options;
}

function otherOptions(situation: Situation): Option[] {
  const { history, observation, named, emptyFields, openChoices, mustScroll, instruction } = situation;
  const open = observation.elements.some(
    (element) =>
      named.has(element.id) &&
      element.role !== 'text' &&
      (isChoice(element) ? !isChosen(element) : timesClicked(element, history) === 0),
  );
  const finished =
    history.length > 0 &&
    emptyFields === 0 &&
    openChoices === 0 &&
    !mustScroll &&
    !open &&
    situation.missing.length === 0;
  const answer = instruction.wantsAnswer ? answerText(situation) : 'Done';
  const last = history.at(-1);
  const options = [
    option({ type: 'answer', text: answer }, [
      finished
        ? { phrase: 'with everything that the task names done', weight: 1.5 }
        : { phrase: 'with work left to do', weight: -4 },
    ]),
    option({ type: 'wait' }, [
      { phrase: 'waiting for a change', weight: last?.action.type === 'wait' ? -5 : -3 },
    ]),
  ];
  if (history.length > 0) {
    options.push(
      option({ type: 'go_back' }, [{ phrase: 'leaving this page', weight: -4 }]),
      option({ type: 'refresh' }, [{ phrase: 'losing what was done', weight: -5 }]),
      option({ type: 'restart' }, [{ phrase: 'beginning again', weight: -5 }]),
    );
  }
  return options;
}

// The text that has most words of the question in it or beside it.
function answerText(situation: Situation): string {
  const { instruction, observation } = situation;
  let best = '';
  let most = 0;
  for (const element of observation.elements) {
    if (!element.name || isField(element)) continue;
    const words = new Set(`${element.name} ${element.context}`.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? []);
    const hits = instruction.words.filter((word) => words.has(word)).length;
    if (hits > most) {
      most = hits;
      best = element.name;
    }
  }
  return best || observation.title || 'Done';
}

/** Every option, best first; equal scores keep the order of the page. */
export function rankOptions(situation: Situation): Option[] {
  const options: Option[] = [];
  for (const element of situation.observation.elements) {
    options.push(...writeOptions(element, situation), ...listOptions(element, situation));
    options.push(option({ type: 'click', element: element.description }, clickFacts(element, situation)));
  }
  options.push(...scrollOptions(situation), ...otherOptions(situation));
  return options
    .map((entry, index) => ({ entry, index }))
    .sort((a, b) => b.entry.score - a.entry.score || a.index - b.index)
    .map(({ entry }) => entry);
}
