import { BoqError } from '../../../core/errors.js';
import type { Critic } from '../../types.js';
import type { Rule } from '../method.js';

/**
 * Scores as chances of success, by the map that training fitted on held-out episodes: a margin is then a difference
 * of chances, and means the same for every model. The spread is carried over by the slope between q - s and q + s.
 */
export function calibrated(): Rule {
  return {
    name: 'calibrated',
    needsScores: true,
    critic: (inner): Critic => {
      if (!inner.chance) {
        throw new BoqError(
          'BOQ_USAGE',
          'Expected a model with a calibration for the rule "calibrated": train it with a validation split.',
        );
      }
      const chance = (q: number): number => inner.chance!(q);
      return {
        begin: (state) => {
          const scoring = inner.begin(state);
          return {
            add: (candidate) => scoring.add(candidate),
            scores: async () => {
              const { q, spread, v } = await scoring.scores();
              return {
                q: q.map(chance),
                spread: q.map(
                  (value, index) => (chance(value + spread[index]!) - chance(value - spread[index]!)) / 2,
                ),
                v: chance(v),
              };
            },
          };
        },
      };
    },
  };
}
