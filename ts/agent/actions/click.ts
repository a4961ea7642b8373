import { chooseOption } from './options.js';
import { type ActionDefinition, actionSchema, done, elementProperty, failed, text } from './types.js';

export const click: ActionDefinition = {
  type: 'click',
  description:
    'Click an element: a button, link, tab, menu item, check box, or an option of a list (name the option and its list).',
  schema: actionSchema('click', { element: elementProperty }),
  needsPoint: true,
  presses: () => 'click',
  async execute(surface, action, point) {
    const element = text(action, 'element');
    if (!point) return failed(`no place is known for ${element}`);
    const control = await surface.control(point);
    // The list that the browser draws for a <select> cannot be clicked in a headless browser.
    if (control.kind === 'select') return chooseOption(surface, point, control, element, true);
    if (control.kind === 'file') return failed(`${control.words} takes a file: write its name into it`);
    await surface.click(point);
    return done(`clicked ${element}`);
  },
};
