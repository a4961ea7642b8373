import { type ActionDefinition, actionSchema, done, failed } from './types.js';

export const goBack: ActionDefinition = {
  type: 'go_back',
  description:
    'Go back to the page before this one; in a tab that a link has opened, return to the tab before.',
  schema: actionSchema('go_back', {}),
  needsPoint: false,
  async execute(surface) {
    return (await surface.goBack()) ? done('went back') : failed('there is no page to go back to');
  },
};
