import { type ActionDefinition, actionSchema, done, failed, text } from './types.js';

export const goTo: ActionDefinition = {
  type: 'goto',
  description: 'Go to an address.',
  schema: actionSchema('goto', { url: { type: 'string', minLength: 1, description: 'The full address.' } }),
  needsPoint: false,
  async execute(surface, action) {
    const wanted = text(action, 'url').trim();
    const url = /^[a-z][a-z0-9+.-]*:/i.test(wanted) ? wanted : `https://${wanted}`;
    if (!URL.canParse(url)) return failed(`${wanted} is no address`);
    const fault = await surface.goto(url);
    return fault ? failed(`${url} did not load: ${fault}`) : done(`went to ${url}`);
  },
};
