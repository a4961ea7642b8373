import { type ActionDefinition, actionSchema, done, elementProperty, failed, text } from './types.js';

export const drag: ActionDefinition = {
  type: 'drag',
  description: 'Drag an element by so many pixels: a slider, a card, a corner of a map.',
  schema: actionSchema('drag', {
    element: elementProperty,
    right: { type: 'number', description: 'Pixels to the right; negative for the left.' },
    down: { type: 'number', description: 'Pixels down; negative for up.' },
  }),
  needsPoint: true,
  async execute(surface, action, point) {
    const element = text(action, 'element');
    if (!point) return failed(`no place is known for ${element}`);
    const [right, down] = [Number(action.right), Number(action.down)];
    await surface.drag(point, { x: point.x + right, y: point.y + down });
    return done(`dragged ${element} by ${right} to the right and ${down} down`);
  },
};
