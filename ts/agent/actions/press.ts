import { type ActionDefinition, actionSchema, done, text } from './types.js';

const keys = [
  'Enter',
  'Tab',
  'Escape',
  'Backspace',
  'Delete',
  'ArrowUp',
  'ArrowDown',
  'ArrowLeft',
  'ArrowRight',
  'Home',
  'End',
  'PageUp',
  'PageDown',
  'Space',
];

export const press: ActionDefinition = {
  type: 'press',
  description: 'Press a key; it goes to the element that was used last.',
  schema: actionSchema('press', { key: { enum: keys } }),
  needsPoint: false,
  presses: (action) => (action['key'] === 'Enter' || action['key'] === 'Space' ? 'key' : null),
  async execute(surface, action) {
    const key = text(action, 'key');
    await surface.press(key);
    return done(`pressed ${key}`);
  },
};
