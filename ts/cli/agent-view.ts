/** What agent.js shows and asks while the agent works. */

import type { EpisodeEvent } from '../agent/episode.js';
import type { IrreversibleAction } from '../agent/irreversible.js';
import { describeAction } from '../learning/templates.js';
import type { Candidate } from '../store/types.js';
import { ask } from './ask.js';
import type { CommandContext } from './command.js';

/** The candidates of each step with their values, the chosen one marked, and what came of it. */
export function liveView({ print }: Pick<CommandContext, 'print'>): (event: EpisodeEvent) => void {
  return (event) => {
    if (event.type === 'decided') {
      print(`\nStep ${event.step + 1}`);
      event.candidates.forEach((candidate, index) => {
        const mark = index === event.selection.index ? '>' : ' ';
        const value = event.scores ? `Q ${event.scores.q[index]!.toFixed(3)}  ` : '';
        const thought = candidate.thought ? `  (${candidate.thought})` : '';
        print(` ${mark} ${value}${describeAction(candidate.action)}${thought}`);
      });
      print(`   ${event.selection.selector}: ${event.selection.reason}`);
    } else if (event.type === 'candidate-error') {
      print(`   not a valid candidate: ${event.error.message}`);
    } else if (event.type === 'step') {
      print(`   ${event.record.result.ok ? 'did it' : 'did not work'}: ${event.record.result.message}`);
    } else if (event.type === 'end') print('');
  };
}

/** Steps as they are stored. */
export function jsonEvents({ print }: Pick<CommandContext, 'print'>): (event: EpisodeEvent) => void {
  return (event) => {
    if (event.type === 'step') print(JSON.stringify(event));
  };
}

/** Asked before each action; anything but a no is a yes, silence is none. */
export async function askForStep(candidate: Candidate, signal: AbortSignal): Promise<boolean> {
  const reply = await ask(`   ${describeAction(candidate.action)}: do it? [Y/n] `, signal);
  return reply !== null && !/^\s*n/i.test(reply);
}

const verbs = { pay: 'pays for something', delete: 'deletes something', send: 'sends something' } as const;

/** Asked before what may not be undone; only a yes is a yes. */
export async function askToConfirm(
  { kind, target, url }: IrreversibleAction,
  signal: AbortSignal,
): Promise<boolean> {
  const reply = await ask(`   ${target} on ${url} may be one that ${verbs[kind]}: press it? [y/N] `, signal);
  return reply !== null && /^\s*y/i.test(reply);
}
