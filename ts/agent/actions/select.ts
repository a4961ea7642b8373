import { chooseOption } from './options.js';
import { type ActionDefinition, actionSchema, elementProperty, failed, text } from './types.js';

export const select: ActionDefinition = {
  type: 'select',
  description: 'Choose an option of a list.',
  schema: actionSchema('select', {
    element: elementProperty,
    option: { type: 'string', minLength: 1, description: 'The text of the option.' },
  }),
  needsPoint: true,
  async execute(surface, action, point) {
    const element = text(action, 'element');
    if (!point) return failed(`no place is known for ${element}`);
    const control = await surface.control(point);
    if (control.kind !== 'select') return failed(`${control.words || element} is no list`);
    return chooseOption(surface, point, control, text(action, 'option'));
  },
};
