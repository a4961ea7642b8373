/** A scripted model that orders tea: it reads from the prompt what is left to do, and offers all of it. */
import { type Reply, textOf, type WireRequest } from './endpoint-server.js';

/** Candidates for the page as the prompt describes it, in pieces, as models write; the second of those that a picker is shown. */
export function shopper(request: WireRequest): Reply {
  const text = textOf(request);
  const usage = { prompt_tokens: 1000, completion_tokens: 50 };
  if (request.response_format?.json_schema?.name === 'choice') {
    return { pieces: ['{"reason": "the second is as good", ', '"choice": 2}'], usage };
  }
  const left = [
    ...['Green tea', 'Lemon'].flatMap((name) => {
      const line = new RegExp(`^- ((?:checkbox|radio) "${name}"[^;\\n]*); not checked`, 'm').exec(text);
      return line ? [{ type: 'click', element: line[1]! }] : [];
    }),
    ...(/^- textbox "Name"(?!.*holds)/m.test(text)
      ? [{ type: 'write', element: 'textbox "Name"', text: 'Ada', submit: false }]
      : []),
  ];
  const actions = left.length > 0 ? left : [{ type: 'click', element: 'button "Order"' }];
  const candidates = actions.map((action) => ({ thought: 'it is still open', note: '', action }));
  return { pieces: JSON.stringify({ candidates }).match(/.{1,40}/g)!, usage };
}
