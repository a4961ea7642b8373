/**
 * Facts about one possible action, each with the weight it has in the ranking. A thought is the facts' phrases, the
 * score is the sum of their weights: what is said is what is counted. The weights are guesses, made once.
 */
import type { PageElement } from '../types.js';
import { isField } from './fields.js';
import {
  alikeKey,
  isChoice,
  isChosen,
  isNext,
  isOpener,
  isSubmit,
  type Situation,
  timesClicked,
} from './situation.js';
import { alike, contentWords, fold, wordsOf } from './words.js';

export interface Fact {
  phrase: string;
  weight: number;
}

// What people call elements of a role.
const kindWords: Record<string, string> = {
  button: 'button', link: 'link', tab: 'tab section', checkbox: 'checkbox box', radio: 'radio option', switch: 'switch toggle',
  textbox: 'textbox field input text', searchbox: 'textbox field search', combobox: 'list dropdown menu', listbox: 'list',
  option: 'option item', menuitem: 'menu item', heading: 'heading title section', image: 'image picture icon', graphic: 'shape item figure',
  treeitem: 'folder file', clickable: 'link button icon item', slider: 'slider', spinbutton: 'number spinner', datefield: 'date', timefield: 'time',
}; // biome-ignore format: a table

// Words about pages in general: they name no element in particular.
const commonWords = new Set(
  'button link tab section text textbox field box item list page menu icon option dialog file folder area result widget'.split(
    ' ',
  ),
);

function kindFacts(element: PageElement, situation: Situation): Fact[] {
  const { instruction } = situation;
  const kinds = [element.role, element.tag, element.inputType].filter(
    (kind) => kind !== '' && kind !== 'clickable',
  );
  const quoted = instruction.quotations.some(({ text, use }) => use === 'find' && kinds.includes(fold(text)));
  if (quoted) return [{ phrase: 'of the kind that the task quotes', weight: 3.5 }];
  const words = `${kindWords[element.role] ?? ''} ${element.tag}`.split(' ');
  const hit = instruction.words.some((word) => words.some((kind) => kind.length > 2 && alike(kind, word)));
  return hit ? [{ phrase: 'of the kind that the task names', weight: 0.8 }] : [];
}

function nameFacts(element: PageElement, situation: Situation): Fact[] {
  const { instruction, named } = situation;
  const naming = named.get(element.id);
  if (naming?.kind === 'quoted') return [{ phrase: 'quoted in the task', weight: 4.5 }];
  if (naming?.kind === 'quoted-loosely')
    return [{ phrase: 'quoted in the task in other letters', weight: 3.5 }];
  if (naming?.kind === 'fits')
    return [{ phrase: 'fitting the beginning and end that the task gives', weight: 4 }];
  if (naming) {
    const general = contentWords(element.name).every((word) => commonWords.has(word));
    return [
      general
        ? { phrase: 'named in general in the task', weight: 1 }
        : { phrase: 'named in the task', weight: 3.5 },
    ];
  }
  if (isField(element)) return [];
  const own = contentWords(element.name).filter((word) => !commonWords.has(word));
  const marker = ownMarkers(element, situation).length > 0;
  const written = instruction.quotations
    .filter(({ use }) => use !== 'find')
    .flatMap(({ text }) => wordsOf(text));
  const wanted = instruction.words.filter((word) => !written.includes(word) && !commonWords.has(word));
  const common = own.filter((word) => wanted.some((other) => alike(word, other)));
  if (marker) return [{ phrase: 'holding a name from the task', weight: 3 }];
  if (common.length === 0) return [];
  if (common.length === own.length) return [{ phrase: 'named in the task in other words', weight: 2.5 }];
  return [{ phrase: 'sharing words with the task', weight: 0.4 + (1.4 * common.length) / own.length }];
}

// Names and quotations of the instruction that stand in a text.
function markersIn(text: string, situation: Situation): string[] {
  const words = new Set(wordsOf(text));
  const { instruction } = situation;
  const finds = instruction.quotations.filter(({ use }) => use === 'find').map((quotation) => quotation.text);
  return [...instruction.names, ...finds].filter((name) => {
    const parts = contentWords(name);
    return parts.length > 0 && parts.every((word) => words.has(word));
  });
}

const ownMarkers = (element: PageElement, situation: Situation): string[] =>
  markersIn(element.name, situation);

function rowFacts(element: PageElement, situation: Situation, relevant: boolean): Fact[] {
  if (!element.context) return [];
  const { instruction, alike: groups } = situation;
  const facts: Fact[] = [];
  const own = new Set(wordsOf(element.name));
  const names = markersIn(element.context, situation).filter(
    (name) => !wordsOf(name).every((word) => own.has(word)),
  );
  if (names.length > 0) {
    facts.push({ phrase: 'beside a name from the task', weight: relevant ? 2.5 : 0.6 });
  } else if ((groups.get(alikeKey(element))?.length ?? 0) > 1 && instruction.names.length > 0) {
    facts.push({ phrase: 'one of several alike and not beside a name from the task', weight: -1.5 });
  }
  const label = contentWords(element.context).filter((word) => !own.has(word) && !commonWords.has(word));
  const plain = instruction.words.filter(
    (word) => !instruction.names.includes(word) && !commonWords.has(word),
  );
  if (element.role !== 'text' && label.some((word) => plain.some((other) => alike(word, other)))) {
    facts.push({ phrase: 'beside words of the task', weight: 1.2 });
  }
  return facts;
}

function stateFacts(element: PageElement, situation: Situation): Fact[] {
  const facts: Fact[] = [];
  const { history, named } = situation;
  if (element.disabled) facts.push({ phrase: 'disabled', weight: -6 });
  if (isChoice(element)) {
    if (isChosen(element)) {
      const wanted = named.has(element.id);
      if (wanted) facts.push({ phrase: 'chosen already', weight: -7 });
      else if (element.role === 'checkbox')
        facts.push({ phrase: 'chosen though the task does not name it', weight: 1 });
      else facts.push({ phrase: 'chosen already', weight: -3 });
    }
    return facts;
  }
  const clicks = timesClicked(element, history);
  if (clicks > 0) {
    const paging = isNext(element);
    facts.push({
      phrase:
        clicks === 1 ? 'clicked before' : clicks === 2 ? 'clicked twice before' : 'clicked many times before',
      weight: (paging ? -0.3 : -2.5) * Math.min(clicks, 3),
    });
  }
  if (element.expanded === true || (element.role === 'tab' && element.selected === true)) {
    facts.push({ phrase: 'open already', weight: -2.5 });
  }
  return facts;
}

const count = (number: number): string =>
  number === 1 ? 'one' : number === 2 ? 'two' : number === 3 ? 'three' : 'several';

function submitFacts(element: PageElement, situation: Situation): Fact[] {
  if (!isSubmit(element)) return [];
  const { emptyFields, openChoices, mustScroll, history } = situation;
  if (emptyFields > 0) {
    return [
      {
        phrase: `a submit button with ${count(emptyFields)} empty field${emptyFields > 1 ? 's' : ''}`,
        weight: -4,
      },
    ];
  }
  if (openChoices > 0) {
    return [
      {
        phrase: `a submit button with ${count(openChoices)} choice${openChoices > 1 ? 's' : ''} open`,
        weight: -4,
      },
    ];
  }
  if (mustScroll) return [{ phrase: 'a submit button with scrolling to do', weight: -4 }];
  const worked = history.some(({ action, result }) => result.ok && action.type !== 'scroll');
  return worked
    ? [{ phrase: 'a submit button with nothing open', weight: 2 }]
    : [{ phrase: 'a submit button', weight: 0.3 }];
}

function openerFacts(element: PageElement, situation: Situation): Fact[] {
  if (!isOpener(element)) return [];
  const { instruction, missing, placeBeyond } = situation;
  const facts: Fact[] = [];
  if (
    instruction.words.some((word) => /^(expand|open|switch|navigate|unfold|show|browse)/.test(word)) ||
    /\b(switch|navigate|expand|open)\b/i.test(instruction.text)
  ) {
    facts.push({ phrase: 'opening more as the task asks', weight: 1.2 });
  } else facts.push({ phrase: 'opening more', weight: 0.6 });
  if (missing.length > 0)
    facts.push({ phrase: 'while something that the task names is not shown', weight: 2 });
  if (placeBeyond && isNext(element))
    facts.push({ phrase: 'while the task counts further than what is shown', weight: 4 });
  return facts;
}

function orderFacts(element: PageElement, situation: Situation): Fact[] {
  const { named, history, observation } = situation;
  const own = named.get(element.id);
  if (!own || timesClicked(element, history) > 0) return [];
  const open = observation.elements.filter((other) => {
    const naming = named.get(other.id);
    if (!naming || other.role === 'text' || other.role === 'heading') return false;
    return isChoice(other) ? !isChosen(other) : timesClicked(other, history) === 0;
  });
  const earlier = open.some((other) => (named.get(other.id)?.position ?? 0) < own.position);
  const later = open.some((other) => (named.get(other.id)?.position ?? 0) > own.position);
  if (earlier) return [{ phrase: 'after something else that the task names', weight: -1 }];
  return later ? [{ phrase: 'first of what the task names', weight: 0.8 }] : [];
}

/** Facts about clicking an element. */
export function clickFacts(element: PageElement, situation: Situation): Fact[] {
  const name = nameFacts(element, situation);
  const kind = kindFacts(element, situation);
  const place =
    situation.atPlace === element ? [{ phrase: 'at the place that the task names', weight: 4.5 }] : [];
  const opener = openerFacts(element, situation);
  const relevant = name.length > 0 || opener.length > 0 || place.length > 0;
  const facts = [
    ...name,
    ...kind,
    ...place,
    ...rowFacts(element, situation, relevant),
    ...opener,
    ...orderFacts(element, situation),
    ...submitFacts(element, situation),
    ...stateFacts(element, situation),
  ];
  if (element.role === 'text' || element.role === 'heading' || element.role === 'listbox') {
    facts.push({ phrase: 'not made for clicking', weight: -2.5 });
  } else if (isField(element) || element.role === 'combobox') {
    const gets = situation.fields.has(element.id) || element.role === 'combobox';
    if (gets) facts.push({ phrase: 'a field to fill rather than to click', weight: -2.5 });
  }
  if (facts.length === 0) facts.push({ phrase: 'not named in the task', weight: 0 });
  return facts;
}
