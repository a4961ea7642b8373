/** Options of the commands that can ask models: which, where, how, and for how much. */
import { type Command, Option } from 'commander';
import { Budget, type BudgetLimits, type Price, priceOf } from '../agent/budget.js';
import type { VlmChoice } from '../agent/policy/registry.js';
import { type ProposalStyle, proposalStyles } from '../agent/policy/vlm-policy.js';
import {
  type EndpointOptions,
  presetNames,
  type Role,
  readVlmFile,
  resolveEndpoint,
  roles,
} from '../agent/vlm/index.js';
import { BoqError } from '../core/errors.js';
import { type CommandContext, integerOption, numberOption } from './command.js';

export interface VlmFlags {
  policy: string;
  endpoint?: string;
  vlmModel?: string;
  apiKey?: string;
  vlmConfig?: string;
  proposals?: ProposalStyle;
  localizer: string;
  maxUsd?: number;
  maxTokens?: number;
  maxCalls?: number;
  maxMinutes?: number;
}

export function addVlmOptions(command: Command): Command {
  return command
    .option('--policy <name>', 'who proposes actions: page, page-sampled, or vlm', 'page')
    .option('--endpoint <where>', `of the model: ${presetNames.join(', ')}, or an address (BOQ_VLM_ENDPOINT)`)
    .option('--vlm-model <name>', 'which model proposes (BOQ_VLM_MODEL)')
    .option('--api-key <key>', 'others on this machine can see it here: BOQ_VLM_API_KEY is safer')
    .option('--vlm-config <file>', 'endpoints, models and their settings as JSON (BOQ_VLM_CONFIG)')
    .addOption(
      new Option('--proposals <style>', 'candidates from one answer, from independent ones, or half and half')
        .choices(proposalStyles)
        .default('list'),
    )
    .option(
      '--localizer <names>',
      'who finds elements: page, holo1, holo1.5, holo2, qwen2.5-vl, qwen3-vl; several in turn, e.g. holo1.5,page',
      'page',
    )
    .option('--max-usd <amount>', 'dollars that models may cost', numberOption(0, 1e6))
    .option('--max-tokens <count>', 'tokens that models may use', integerOption(1))
    .option('--max-calls <count>', 'calls of models', integerOption(1))
    .option('--max-minutes <count>', 'minutes until no more is begun', numberOption(0, 1e6));
}

/** Where the models are, as the flags say; what they leave out the environment says. */
export function vlmChoice(flags: VlmFlags, { say }: Pick<CommandContext, 'say'>): VlmChoice {
  const options: EndpointOptions = {
    ...(flags.endpoint === undefined ? {} : { endpoint: flags.endpoint }),
    ...(flags.vlmModel === undefined ? {} : { model: flags.vlmModel }),
    ...(flags.apiKey === undefined ? {} : { apiKey: flags.apiKey }),
  };
  return {
    options,
    ...(flags.vlmConfig === undefined ? {} : { file: readVlmFile(flags.vlmConfig) }),
    ...(flags.proposals === undefined ? {} : { proposals: flags.proposals }),
    hooks: { onNotice: say },
  };
}

/** Keys in use: they must not be written to a trace. */
export function keysOf(choice: VlmChoice): string[] {
  return settingsOf(choice).flatMap(({ apiKey }) => apiKey ?? []);
}

/**
 * @throws BOQ_USAGE where dollars are limited and the price of a model in use is not known
 */
export function budgetOf(flags: VlmFlags, choice: VlmChoice): Budget {
  const { maxUsd, maxTokens, maxCalls, maxMinutes } = flags;
  const limits: BudgetLimits = {
    prices: pricesOf(choice, maxUsd !== undefined),
    ...(maxUsd === undefined ? {} : { maxUsd }),
    ...(maxTokens === undefined ? {} : { maxTokens }),
    ...(maxCalls === undefined ? {} : { maxCalls }),
    ...(maxMinutes === undefined ? {} : { maxMinutes }),
  };
  return new Budget(limits);
}

/**
 * Prices that the models' file gives, by model.
 * @param areNeeded true where dollars are limited
 * @throws BOQ_USAGE where they are needed and the price of a model in use is not known
 */
export function pricesOf(choice: VlmChoice, areNeeded: boolean): Record<string, Price> {
  const prices: Record<string, Price> = {};
  for (const { model, price } of settingsOf(choice)) {
    if (price) prices[model.toLowerCase().split('/').at(-1) ?? ''] = price;
    else if (areNeeded && priceOf(model) === null) {
      throw new BoqError(
        'BOQ_USAGE',
        `A limit in dollars needs the price of "${model}", which is not known: give "price" in the file of --vlm-config.`,
      );
    }
  }
  return prices;
}

/** Settings of the roles that have a model. */
function settingsOf(choice: VlmChoice): ReturnType<typeof resolveEndpoint>[] {
  return roles.flatMap((role: Role) => {
    try {
      return [resolveEndpoint(role, choice)];
    } catch (error) {
      if (error instanceof BoqError && ['BOQ_VLM_ENDPOINT', 'BOQ_VLM_KEY'].includes(error.code)) return [];
      throw error;
    }
  });
}

/** Options of a stage that a budget ends between two episodes; what was begun is played to its end. */
export function withinBudget(budget: Budget): {
  until: () => boolean;
  onUsage: (usage: readonly Parameters<Budget['add']>[0][]) => void;
} {
  return {
    until: () => budget.exhausted() !== null,
    onUsage: (usage) => {
      for (const one of usage) budget.add(one);
    },
  };
}

/** Says that a stage ended early; the command then fails. */
export function reportBudget(budget: Budget, { say, fail }: Pick<CommandContext, 'say' | 'fail'>): void {
  say(`The budget is spent: ${budget.exhausted()}. Run the same command again with a larger one to go on.`);
  fail();
}
