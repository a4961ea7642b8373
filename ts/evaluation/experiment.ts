/**
 * An experiment as a declaration: policy, trainings, validation, questions, controls. {@link runExperiment} carries it
 * out; the demo and the studies are such declarations.
 */
import type { Backup } from '../learning/backup.js';
import type { NativeTrainConfig } from '../native/surface.js';
import type { LoopPlan } from './loop/plan.js';
import type { RefitMethod } from './refit.js';
import type { PolicyChoice, SeedRange } from './stage.js';
import type { TreeShape } from './tree/branches.js';
import type { ValidationOptions } from './validation.js';

/** Another training on the same episodes. */
export interface Variant {
  /** Goes into folders and labels. */
  name: string;
  config: NativeTrainConfig;
  /** Learns from backed-up values as well, as `--backup` of train.js. */
  backup?: Backup;
  selectors: readonly string[];
}

/** A policy to stand beside the method. */
export interface Reference extends PolicyChoice {
  /** The page policy's weights fitted to the first training's episodes. */
  refit?: RefitMethod;
}

/** One difference that is tested. Labels are those of the results, e.g. `best-of-q, monte-carlo`. */
export interface Comparison {
  /** Part of a question. */
  part: string;
  label: string;
  against: string;
}

/** What is done, declared; the same declaration gives the same figures. */
export interface Experiment extends PolicyChoice {
  benchmark: string;
  /** Candidates a step. */
  n: number;
  training: {
    tasks: readonly string[];
    repeats: number;
    /** How actions are chosen while collecting. */
    selector: string;
    /** One entry an independent training: episode seeds, and the seed of its draws and its networks. */
    draws: readonly { seed: number; seeds: SeedRange }[];
    /** Whose episodes; default the policy that is measured. */
    policy?: PolicyChoice;
    /** Where they are played, e.g. in other words; default the benchmark that is measured on. */
    benchmark?: string;
    /** Collects by tree exploration instead of `selector` and `repeats`. */
    tree?: Partial<TreeShape>;
    /** Collects in a self-improving loop: `selector` explores, each run takes the draw's seeds and those that follow. */
    loop?: { explore: { runs: number } } & Pick<LoopPlan, 'cycles' | 'exploit'> &
      Partial<Pick<LoopPlan, 'n' | 'curriculum' | 'warmStart'>>;
    /**
     * Each entry of `tasks` is a fold: every draw collects them apart and trains one model for each fold on the episodes
     * of all others, and each model is measured only on tasks that it did not train on.
     */
    folds?: true;
    /** Hyper-parameters that differ from the default preset. */
    config?: NativeTrainConfig;
    /** Learns from backed-up values as well, as `--backup` of train.js. */
    backup?: Backup;
    /**
     * Name of the folders of episodes, loop and model; default the experiment's. Experiments of the same training and
     * the same name here collect and train once.
     */
    sharedAs?: string;
  };
  /** Where every choice of a setting is made. */
  validation: Required<Pick<ValidationOptions, 'tasks' | 'seeds'>> & Pick<ValidationOptions, 'grid'>;
  /** Tasks and seeds to measure on. */
  questions: readonly { part: string; tasks: readonly string[]; seeds: SeedRange }[];
  /** Selectors measured with every training's model. */
  selectors: readonly string[];
  /**
   * Selectors measured with models that must gain nothing: trained on shuffled rewards, or the same for everything.
   * A margin `auto` of a shuffled control is the one that was chosen for the training it belongs to.
   * An empty list leaves that control out.
   */
  controls: { shuffled: readonly string[]; constant: readonly string[] };
  /** Other trainings on the same episodes, each measured with selectors of its own. */
  variants?: readonly Variant[];
  /** Other policies measured beside, by plain prompting. */
  references: readonly Reference[];
  /**
   * What the experiment is to show, written down before its questions are played: one comparison an entry, corrected
   * together by Holm's procedure. Everything else that it prints is exploration.
   */
  confirmation?: readonly Comparison[];
}
