import { type ActionDefinition, actionSchema, done, failed } from './types.js';

export const restart: ActionDefinition = {
  type: 'restart',
  description: "Go to the task's start page.",
  schema: actionSchema('restart', {}),
  needsPoint: false,
  async execute(surface) {
    const fault = await surface.goto(surface.startUrl);
    return fault ? failed(`the start page did not load: ${fault}`) : done('went to the start page');
  },
};
