import { fieldValue } from './field-values.js';
import { chooseOption } from './options.js';
import { type ActionDefinition, actionSchema, done, elementProperty, failed, text } from './types.js';

export const write: ActionDefinition = {
  type: 'write',
  description:
    'Write text into a field; what it held before is replaced. Also chooses an option of a list and sets dates, times and colours. `submit` presses Enter afterwards.',
  schema: actionSchema('write', {
    element: elementProperty,
    text: { type: 'string', description: 'The text, exactly as it should stand in the field.' },
    submit: { type: 'boolean', description: 'Press Enter afterwards.' },
  }),
  needsPoint: true,
  presses: (action) => (action['submit'] === true ? 'submit' : null),
  async execute(surface, action, point) {
    const element = text(action, 'element');
    const content = text(action, 'text');
    if (!point) return failed(`no place is known for ${element}`);
    const control = await surface.control(point);
    if (control.disabled) return failed(`${control.words} is disabled`);
    if (control.kind === 'select') return chooseOption(surface, point, control, content);
    if (control.kind === 'value') {
      const value = fieldValue(control.inputType, content);
      if (value === null)
        return failed(`${control.words} takes a ${control.inputType}, "${content}" is none`);
      const taken = await surface.setValue(point, value);
      return taken
        ? done(`set ${control.words} to ${taken}`)
        : failed(`${control.words} refused "${content}"`);
    }
    if (control.kind === 'file') {
      const fault = await surface.upload(point, content);
      return fault ? failed(fault) : done(`gave "${content}" to ${control.words}`);
    }
    const submit = action.submit === true;
    const typed = await surface.type(point, content, submit);
    if (!typed.editable) return failed(`${typed.words || element} is no text field`);
    return done(`wrote "${content}" into ${element}${submit ? ' and pressed Enter' : ''}`);
  },
};
