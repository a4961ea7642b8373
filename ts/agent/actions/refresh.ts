import { type ActionDefinition, actionSchema, done } from './types.js';

export const refresh: ActionDefinition = {
  type: 'refresh',
  description: 'Load the page again.',
  schema: actionSchema('refresh', {}),
  needsPoint: false,
  async execute(surface) {
    await surface.reload();
    return done('loaded the page again');
  },
};
