// What the networks say about held-out transitions, and what simpler predictors say about the same ones.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "native/iql/config.h"
#include "native/iql/iql.h"
#include "native/iql/sampler.h"
#include "native/iql/split.h"
#include "native/iql/standardiser.h"
#include "native/iql/transitions.h"

namespace boq::iql {

/// Values of one model's online networks on held-out transitions, one entry for each.
struct HeldOut {
  std::vector<int64_t> transitions;
  std::vector<float> q, spread;                ///< of the executed action: mean over heads, their deviation
  std::vector<float> v;                        ///< of the state
  std::vector<std::vector<float>> candidates;  ///< Q of everything that was offered, in its order; or empty
};

/// What else predicts the outcome of the same transitions.
struct Baselines {
  std::vector<float> step_rate;  ///< share of successes at this step number in the training episodes
  std::vector<float> task_rate;  ///< of this task
  HeldOut regressor;             ///< in its q and candidates; empty: none was trained
};

/// One entry for each model of the learner, all on the same transitions of `held_out`: as many as there are,
/// at most `limit`, evenly spaced. `sampler`: any of the models' (what it reads here is the same for all).
std::vector<HeldOut> measure_held_out(const Iql& learner, const std::vector<int64_t>& held_out,
                                      const Transitions& data, const Sampler& sampler, bool with_candidates,
                                      int64_t limit);

/// On the transitions that measure_held_out takes of the split. Trains the regressor where `with_regressor`:
/// a network of Q's form, 256 and 64 wide at most, on the discounted returns of the training transitions, for
/// at most 1,000 steps.
Baselines measure_baselines(const Transitions& data, const Split& split, const Standardisers& standardisers,
                            const IqlConfig& config, at::Device device, bool with_regressor, int64_t limit);

}  // namespace boq::iql
