import { type ActionDefinition, actionSchema, done } from './types.js';

export const answer: ActionDefinition = {
  type: 'answer',
  description: 'End the task with this answer: what was asked for, or that it is done.',
  schema: actionSchema('answer', { text: { type: 'string', description: 'The answer, complete.' } }),
  needsPoint: false,
  async execute() {
    return done('answered');
  },
};
