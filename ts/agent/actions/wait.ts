import { type ActionDefinition, actionSchema, done } from './types.js';

export const wait: ActionDefinition = {
  type: 'wait',
  description: 'Wait for the page, when it is still loading or something is about to appear.',
  schema: actionSchema('wait', {}),
  needsPoint: false,
  async execute(surface) {
    await surface.pause();
    return done('waited');
  },
};
