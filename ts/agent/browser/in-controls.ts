/**
 * Acting on controls that a mouse and a keyboard cannot work in a headless browser (native lists, date, time and
 * colour fields), preparing a field for typing, and scrolling the area that can move.
 */
import type { ControlInfo } from '../actions/types.js';
import type { PageApi } from './page-api.js';

export function installControls(api: PageApi): void {
  const valueTypes = new Set(['date', 'time', 'month', 'week', 'datetime-local', 'color', 'range']);
  const notText = new Set([
    'button',
    'submit',
    'reset',
    'image',
    'checkbox',
    'radio',
    'file',
    'hidden',
    ...valueTypes,
  ]);

  const controlAt = (x: number, y: number): { target: Element; option: HTMLOptionElement | null } | null => {
    const hit = api.elementAt(x, y)?.element;
    if (!hit) return null;
    if (hit.tagName === 'OPTION' || hit.tagName === 'OPTGROUP') {
      const list = hit.closest('select');
      if (list) return { target: list, option: hit.tagName === 'OPTION' ? (hit as HTMLOptionElement) : null };
    }
    const label = hit.closest('label');
    if (label?.control && !hit.closest('a,button,input,select,textarea'))
      return { target: label.control, option: null };
    return {
      target: hit.closest('select,input,textarea,[contenteditable=""],[contenteditable=true]') ?? hit,
      option: null,
    };
  };

  const words = (element: Element): string => {
    const name = api.nameOf(element).slice(0, 60);
    return name ? `${api.roleOf(element)} "${name}"` : api.roleOf(element);
  };

  const announce = (element: Element): void => {
    element.dispatchEvent(new Event('input', { bubbles: true, composed: true }));
    element.dispatchEvent(new Event('change', { bubbles: true }));
  };

  const isText = (element: Element | null): element is HTMLElement =>
    element !== null &&
    (element.tagName === 'TEXTAREA' ||
      (element as HTMLElement).isContentEditable ||
      (element.tagName === 'INPUT' && !notText.has((element as HTMLInputElement).type)));

  /** The focused element, looked for in shadow roots and frames. */
  const deepFocus = (): Element | null => {
    let focused: Element | null = document.activeElement;
    for (let depth = 0; focused && depth < 20; depth++) {
      const inner: Element | null =
        api.shadowOf(focused)?.activeElement ??
        (focused.tagName === 'IFRAME' ? (api.documentOf(focused)?.activeElement ?? null) : null);
      if (!inner) break;
      focused = inner;
    }
    return focused;
  };

  let aimed: Element | null = null;
  const within = (outer: Element, inner: Element | undefined): boolean => {
    for (let node: Element | null = inner ?? null; node; node = api.parentOf(node))
      if (node === outer) return true;
    return false;
  };

  api.aim = (x, y) => {
    const element = aimed;
    aimed = null;
    if (!element?.isConnected || within(element, api.elementAt(x, y)?.element)) return null;
    for (const { left, top, width, height } of element.getClientRects()) {
      const middle = { x: left + width / 2, y: top + height / 2 };
      if (within(element, api.elementAt(middle.x, middle.y)?.element)) return middle;
    }
    return null;
  };

  api.control = (x, y): ControlInfo => {
    const place = api.elementAt(x, y);
    // Elements of inner documents keep their own coordinates; only those of this one are followed.
    aimed = place && place.offsetX === 0 && place.offsetY === 0 ? place.element : null;
    const found = controlAt(x, y);
    const none: ControlInfo = {
      kind: 'none',
      words: '',
      options: [],
      multiple: false,
      optionAtPoint: null,
      inputType: '',
      disabled: false,
    };
    if (!found) return none;
    const { target, option } = found;
    const info = { ...none, words: words(target), disabled: target.matches(':disabled') };
    if (target.tagName === 'SELECT') {
      const list = target as HTMLSelectElement;
      return {
        ...info,
        kind: 'select',
        multiple: list.multiple,
        optionAtPoint: option ? option.text.trim() : null,
        options: Array.from(list.options, (entry) => ({
          text: entry.text.trim(),
          selected: entry.selected,
          disabled: entry.disabled,
        })),
      };
    }
    if (target.tagName === 'INPUT') {
      const type = (target as HTMLInputElement).type;
      if (valueTypes.has(type)) return { ...info, kind: 'value', inputType: type };
      if (type === 'file') return { ...info, kind: 'file', inputType: type };
      if (!notText.has(type)) return { ...info, kind: 'text', inputType: type };
      return { ...info, kind: 'other', inputType: type };
    }
    if (target.tagName === 'TEXTAREA' || (target as HTMLElement).isContentEditable)
      return { ...info, kind: 'text' };
    return { ...info, kind: 'other' };
  };

  api.consequence = (x, y, by) => {
    const pressed = (element: Element) => ({ words: words(element), isField: false });
    if (by === 'click') {
      const hit = api.elementAt(x, y)?.element ?? null;
      let node = hit;
      while (node && !api.isClickable(node)) node = api.parentOf(node);
      const control = node ?? hit?.closest('label')?.control ?? hit;
      return control ? pressed(control) : { words: '', isField: false };
    }
    const field = by === 'key' ? deepFocus() : (controlAt(x, y)?.target ?? null);
    if (!field) return { words: '', isField: false };
    if (by === 'key' && !isText(field)) return pressed(field);
    const form = (field as HTMLInputElement).form ?? field.closest('form');
    const button = Array.from(form?.elements ?? []).find((element) =>
      element.matches('button:not([type]),button[type=submit],input[type=submit],input[type=image]'),
    );
    return button ? pressed(button) : { words: words(field), isField: true };
  };

  api.choose = (x, y, text) => {
    const list = controlAt(x, y)?.target as HTMLSelectElement | undefined;
    const option = list && Array.from(list.options).find((entry) => entry.text.trim() === text);
    if (!list || !option || list.disabled || option.disabled) return false;
    list.focus();
    // In a list of many choices a click adds or removes one, as with check boxes.
    if (list.multiple) option.selected = !option.selected;
    else option.selected = true;
    announce(list);
    return true;
  };

  api.setValue = (x, y, value) => {
    const input = controlAt(x, y)?.target as HTMLInputElement | undefined;
    if (!input) return '';
    input.focus();
    // Frameworks watch the property of the instance; the prototype's setter reaches the field itself.
    const prototype = Object.getPrototypeOf(input) as object;
    const setter = Object.getOwnPropertyDescriptor(prototype, 'value')?.set;
    if (setter) setter.call(input, value);
    else input.value = value;
    announce(input);
    return input.value;
  };

  api.prepareTyping = (x, y) => {
    const focused = deepFocus();
    const at = controlAt(x, y)?.target ?? null;
    const inside = at && !isText(at) ? at.querySelector('input,textarea,[contenteditable]') : null;
    const field = [at, inside, focused].find((element): element is HTMLElement => isText(element));
    if (!field) return { editable: false, multiline: false, words: at ? words(at) : '' };
    const input = field as HTMLInputElement;
    if (input.disabled || input.readOnly) return { editable: false, multiline: false, words: words(field) };
    if (field !== focused) field.focus();
    if (typeof input.select === 'function') input.select();
    else {
      const selection = field.ownerDocument.defaultView?.getSelection();
      selection?.selectAllChildren(field);
    }
    return { editable: true, multiline: field.tagName !== 'INPUT', words: words(field) };
  };

  api.fileFieldAt = (x, y) => {
    const target = controlAt(x, y)?.target ?? null;
    return target?.tagName === 'INPUT' && (target as HTMLInputElement).type === 'file' ? target : null;
  };

  api.scrollBy = (direction, x, y) => {
    const horizontal = direction === 'left' || direction === 'right';
    const sign = direction === 'down' || direction === 'right' ? 1 : -1;
    const page = document.scrollingElement ?? document.documentElement;
    const areas: Element[] = [];
    for (let node = api.elementAt(x, y)?.element ?? null; node; node = api.parentOf(node)) areas.push(node);
    areas.push(page);
    const inner: { element: Element; size: number }[] = [];
    for (const element of document.querySelectorAll('*')) {
      const room = horizontal
        ? element.scrollWidth - element.clientWidth
        : element.scrollHeight - element.clientHeight;
      if (room > 1 && element.clientHeight >= 20)
        inner.push({ element, size: element.clientWidth * element.clientHeight });
    }
    inner.sort((a, b) => b.size - a.size);
    areas.push(...inner.map((entry) => entry.element));
    for (const area of areas) {
      if (area !== page) {
        const style = getComputedStyle(area);
        const overflow = horizontal ? style.overflowX : style.overflowY;
        if (overflow !== 'auto' && overflow !== 'scroll') continue;
      }
      const before = horizontal ? area.scrollLeft : area.scrollTop;
      const step = Math.max(20, 0.8 * (horizontal ? area.clientWidth : area.clientHeight)) * sign;
      area.scrollBy({ left: horizontal ? step : 0, top: horizontal ? 0 : step, behavior: 'instant' });
      if ((horizontal ? area.scrollLeft : area.scrollTop) !== before) return true;
    }
    return false;
  };
}
