/** The actions an agent knows, and the check that every candidate passes before anything is done with it. */
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js';
import { BoqError } from '../../core/errors.js';
import { nearestNames } from '../../core/nearest.js';
import type { Action, Candidate, CandidateError, Json } from '../../store/types.js';
import { answer } from './answer.js';
import { click } from './click.js';
import { drag } from './drag.js';
import { goBack } from './go-back.js';
import { goTo } from './goto.js';
import { hover } from './hover.js';
import { press } from './press.js';
import { refresh } from './refresh.js';
import { restart } from './restart.js';
import { scroll } from './scroll.js';
import { select } from './select.js';
import { switchTab } from './switch-tab.js';
import type { ActionDefinition } from './types.js';
import { wait } from './wait.js';
import { write } from './write.js';

/** The paper's eight actions, in the order in which prompts list them. */
export const standardActions: readonly ActionDefinition[] = [
  click,
  write,
  scroll,
  goBack,
  refresh,
  wait,
  restart,
  answer,
];

/** Beyond the paper, by name: for agents that are to have them. */
export const optionalActions: readonly ActionDefinition[] = [goTo, press, hover, drag, select, switchTab];

/**
 * The paper's actions and optional ones by name.
 * @throws BOQ_USAGE with the nearest name
 */
export function actionsWith(...names: readonly string[]): ActionRegistry {
  const known = optionalActions.map(({ type }) => type);
  const chosen = [...new Set(names)].map((name) => {
    const found = optionalActions.find(({ type }) => type === name);
    if (found) return found;
    throw new BoqError(
      'BOQ_USAGE',
      `Unknown optional action "${name}": did you mean ${nearestNames(name, known)[0]}? There are ${known.join(', ')}.`,
    );
  });
  return new ActionRegistry([...standardActions, ...chosen]);
}

const longestRaw = 500;

/** A set of actions by name: their schemas for prompts, and the check of what a policy offers. */
export class ActionRegistry {
  readonly #definitions = new Map<string, ActionDefinition>();
  readonly #validators = new Map<string, ValidateFunction>();

  /** @throws BoqError BOQ_INVALID_ARGUMENT where two actions have one name. */
  constructor(definitions: readonly ActionDefinition[] = standardActions) {
    const ajv = new Ajv2020({ allErrors: true });
    for (const definition of definitions) {
      if (this.#definitions.has(definition.type)) {
        throw new BoqError(
          'BOQ_INVALID_ARGUMENT',
          `expected one action of each name, "${definition.type}" came twice`,
        );
      }
      this.#definitions.set(definition.type, definition);
      this.#validators.set(definition.type, ajv.compile(definition.schema));
    }
  }

  get types(): string[] {
    return [...this.#definitions.keys()];
  }

  get definitions(): ActionDefinition[] {
    return [...this.#definitions.values()];
  }

  get(type: string): ActionDefinition | undefined {
    return this.#definitions.get(type);
  }

  /** JSON Schema 2020-12 of one candidate: {action, thought, note}. */
  candidateSchema(): { [key: string]: Json } {
    return {
      type: 'object',
      properties: {
        thought: { type: 'string' },
        note: { type: 'string' },
        action: { anyOf: this.definitions.map((definition) => definition.schema) },
      },
      required: ['thought', 'note', 'action'],
      additionalProperties: false,
    };
  }

  /** What is wrong with an action, in one sentence; null where nothing is. */
  check(action: unknown): string | null {
    if (typeof action !== 'object' || action === null || Array.isArray(action)) {
      return `expected an action object, got ${action === null ? 'null' : Array.isArray(action) ? 'a list' : typeof action}`;
    }
    const type = (action as { type?: unknown }).type;
    const validate = typeof type === 'string' ? this.#validators.get(type) : undefined;
    if (!validate) {
      return `expected an action of type ${this.types.join(', ')}, got ${JSON.stringify(type) ?? 'none'}`;
    }
    if (validate(action)) return null;
    const faults = (validate.errors ?? []).map((fault) => {
      const where = fault.instancePath.slice(1) || 'the action';
      const extra = fault.params.additionalProperty;
      return `${where} ${fault.message ?? 'is wrong'}${extra ? ` ("${String(extra)}")` : ''}`;
    });
    return `action "${type as string}": ${[...new Set(faults)].join('; ')}`;
  }

  /** A checked candidate, or the error that is recorded in its place. Missing thought and note count as empty. */
  parseCandidate(value: unknown): { candidate: Candidate } | { error: CandidateError } {
    const raw = (JSON.stringify(value) ?? String(value)).slice(0, longestRaw);
    const fault = (message: string) => ({ error: { code: 'BOQ_CANDIDATE_INVALID', message, raw } });
    if (typeof value !== 'object' || value === null || Array.isArray(value)) {
      return fault('expected a candidate object with thought, note and action');
    }
    const {
      action,
      thought = '',
      note = '',
    } = value as { action?: unknown; thought?: unknown; note?: unknown };
    if (typeof thought !== 'string' || typeof note !== 'string')
      return fault('expected thought and note as text');
    const message = this.check(action);
    return message ? fault(message) : { candidate: { action: action as Action, thought, note } };
  }
}
