import { type ActionDefinition, actionSchema, done, failed, text } from './types.js';

const directions = ['up', 'down', 'left', 'right'] as const;

export const scroll: ActionDefinition = {
  type: 'scroll',
  description: 'Scroll the page, or the area that was used last, by most of what is visible.',
  schema: actionSchema('scroll', { direction: { enum: [...directions] } }),
  needsPoint: false,
  async execute(surface, action) {
    const direction = text(action, 'direction') as (typeof directions)[number];
    const moved = await surface.scroll(direction);
    return moved ? done(`scrolled ${direction}`) : failed(`nothing can be scrolled further ${direction}`);
  },
};
