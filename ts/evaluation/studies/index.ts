/** Declared experiments by name: what a committed figure rests on. */
import { BoqError } from '../../core/errors.js';
import { nearestNames } from '../../core/nearest.js';
import type { Experiment } from '../experiment.js';
import { heldOut } from './held-out.js';
import * as selection from './selection.js';
import * as selectionGain from './selection-gain.js';

export { demo } from './demo.js';

const studies: Readonly<Record<string, Experiment>> = {
  'gain-page': selectionGain.page,
  'gain-page-sampled': selectionGain.pageSampled,
  selection: selection.page,
  'selection-rules': selection.rules,
  'selection-baselines': selection.baselines,
  'selection-search': selection.search,
  'selection-trainings': selection.trainings,
  'held-out': heldOut,
  'tree-wide': selection.treeWide,
  'tree-deep': selection.treeDeep,
  'tree-chain': selection.treeChain,
  'tree-epsilon': selection.treeEpsilon,
  'loop-plain': selection.loopPlain,
  'loop-curriculum': selection.loopCurriculum,
  'loop-mixed': selection.loopMixed,
  'loop-warm': selection.loopWarm,
  reworded: selection.reworded,
  'transfer-none': selection.transferNone,
  'transfer-cold': selection.transferCold,
  'transfer-warm': selection.transferWarm,
};

export const studyNames: readonly string[] = Object.keys(studies);

/** @throws BOQ_USAGE with the nearest name */
export function findStudy(name: string): Experiment {
  const study = Object.hasOwn(studies, name) ? studies[name] : undefined;
  if (study) return study;
  throw new BoqError(
    'BOQ_USAGE',
    `Unknown study "${name}": did you mean ${nearestNames(name, studyNames)[0]}?`,
  );
}
