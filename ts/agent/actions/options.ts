/** Native lists: which option is meant. */
import type { ActionResult, Point } from '../../store/types.js';
import { type ActionSurface, type ControlInfo, done, failed } from './types.js';

const fold = (value: string): string => value.toLowerCase().replace(/\s+/g, ' ').trim();

/** The option that the words name: equal text first, then the longest option quoted or contained in the words. */
export function matchOption(options: readonly { text: string }[], words: string): string | null {
  const wanted = fold(words);
  const equal = options.find((option) => fold(option.text) === wanted);
  if (equal) return equal.text;
  const quoted = Array.from(words.matchAll(/"([^"]+)"/g), (match) => fold(match[1] ?? ''));
  const byQuote = options.find((option) => quoted.includes(fold(option.text)));
  if (byQuote) return byQuote.text;
  const contained = options
    .filter((option) => option.text && ` ${wanted} `.includes(` ${fold(option.text)} `))
    .sort((a, b) => b.text.length - a.text.length);
  if (contained[0]) return contained[0].text;
  const starting = options.filter((option) => wanted && fold(option.text).startsWith(wanted));
  return starting.length === 1 ? (starting[0]?.text ?? null) : null;
}

/** Chooses an option in the list under the point; the words name the option, unless `atPoint` says it lies there. */
export async function chooseOption(
  surface: ActionSurface,
  point: Point,
  control: ControlInfo,
  words: string,
  atPoint = false,
): Promise<ActionResult> {
  if (control.disabled) return failed(`${control.words} is disabled`);
  const option = (atPoint ? control.optionAtPoint : null) ?? matchOption(control.options, words);
  if (option === null) {
    const names = control.options.slice(0, 30).map((entry) => `"${entry.text}"`);
    return failed(`${control.words} is a list: name one of its options ${names.join(', ')}`);
  }
  const before = control.options.find((entry) => entry.text === option)?.selected ?? false;
  if (!(await surface.choose(point, option)))
    return failed(`option "${option}" in ${control.words} is disabled`);
  const verb = control.multiple && before ? 'removed' : 'chose';
  return done(`${verb} option "${option}" in ${control.words}`);
}
