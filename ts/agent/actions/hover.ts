import { type ActionDefinition, actionSchema, done, elementProperty, failed, text } from './types.js';

export const hover: ActionDefinition = {
  type: 'hover',
  description: 'Move the mouse over an element without clicking, to open a menu or a hint.',
  schema: actionSchema('hover', { element: elementProperty }),
  needsPoint: true,
  async execute(surface, action, point) {
    const element = text(action, 'element');
    if (!point) return failed(`no place is known for ${element}`);
    await surface.hover(point);
    return done(`moved the mouse over ${element}`);
  },
};
