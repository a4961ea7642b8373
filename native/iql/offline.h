// What held-out episodes say about a Q-function.
#pragma once

#include <span>

#include "native/iql/iql.h"
#include "native/iql/trainer.h"
#include "native/iql/transitions.h"

namespace boq::iql {

/// Chance that a random positive scores above a random negative, ties counted half. NaN where a class is
/// empty.
double area_under_curve(std::span<const float> scores, std::span<const uint8_t> positive);

/// A quick look during training: over at most `limit` evenly spaced transitions of `held_out`, how well Q, V
/// and the step number alone tell successful episodes from others, and the mean squared error of Q as a
/// discounted return. Keys validation/{q_auc,v_auc,q_mse,q_mean,v_mean}; none where there is nothing to
/// measure.
Metrics quick_evaluation(const Iql& learner, const Transitions& data, const std::vector<int64_t>& held_out,
                         const Sampler& sampler, int64_t limit = 2048);

}  // namespace boq::iql
