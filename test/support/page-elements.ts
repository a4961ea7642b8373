/** Page elements for tests that need no browser. */
import { describeElements } from '../../ts/agent/elements.js';
import type { Observation, PageElement } from '../../ts/agent/types.js';

let nextId = 0;

export function element(
  role: string,
  name: string,
  more: Partial<PageElement> = {},
): Omit<PageElement, 'description'> {
  const id = nextId++;
  return {
    id,
    role,
    name,
    tag: role === 'button' ? 'button' : role === 'textbox' || role === 'checkbox' ? 'input' : 'div',
    inputType: role === 'checkbox' ? 'checkbox' : role === 'textbox' ? 'text' : '',
    value: '',
    checked: role === 'checkbox' || role === 'radio' ? false : null,
    selected: null,
    expanded: null,
    disabled: false,
    focused: false,
    options: [],
    box: { x: 10, y: 10 + 20 * (id % 50), width: 80, height: 18 },
    context: '',
    ...more,
  };
}

export function observation(
  elements: Omit<PageElement, 'description'>[],
  scroll: Partial<Observation['scroll']> = {},
): Observation {
  return {
    url: 'https://example.org/',
    title: 'Example',
    viewport: { width: 800, height: 600, deviceScaleFactor: 1 },
    scroll: { x: 0, y: 0, maxX: 0, maxY: 0, ...scroll },
    screenshot: { bytes: new Uint8Array(), format: 'png', width: 800, height: 600 },
    elements: describeElements(elements),
    tabs: [{ url: 'https://example.org/', title: 'Example', active: true }],
    events: [],
  };
}
