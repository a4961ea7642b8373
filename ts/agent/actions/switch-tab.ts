import { type ActionDefinition, actionSchema, done, failed } from './types.js';

export const switchTab: ActionDefinition = {
  type: 'switch_tab',
  description: 'Go to another open tab, by its number in the list of tabs (the first is 1).',
  schema: actionSchema('switch_tab', { tab: { type: 'integer', minimum: 1 } }),
  needsPoint: false,
  async execute(surface, action) {
    const tab = Number(action.tab);
    return (await surface.switchTab(tab)) ? done(`went to tab ${tab}`) : failed(`there is no tab ${tab}`);
  },
};
