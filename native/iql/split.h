// The part of the data that trains and the part that is held out, and what training may learn from its own
// part alone before it begins.
#pragma once

#include <cstdint>
#include <vector>

#include "native/iql/standardiser.h"
#include "native/iql/transitions.h"

namespace boq::iql {

/// Which transitions train and which are held out.
struct Split {
  std::vector<int64_t> training, validation;  ///< transitions
  double training_success_rate = 0;           ///< of its episodes
  int64_t training_episodes = 0, validation_episodes = 0;
};

/// Validation: episodes whose split value is below `fraction`.
Split split_of(const Transitions& data, double fraction);

/// Deals the outcomes of the training episodes out anew, by `seed`: the control in which nothing can be
/// learned.
void shuffle_outcomes(Transitions& data, double validation_fraction, uint64_t seed);

/// Statistics of the rows that the `training` transitions use, each row as often as they use it; results are
/// limited to `clip` deviations. Throws BOQ_NOT_FINITE where a row is not finite.
Standardisers standardisers_for(const Transitions& data, const std::vector<int64_t>& training, double clip);

}  // namespace boq::iql
