// What held-out episodes say about a Q-function. Every figure stands beside what simpler predictors reach on
// the same transitions: V alone, the number of the step, the task, and a regressor of the return on the same
// features. A Q that only counts steps or knows tasks apart must show up as such.
#pragma once

#include <span>
#include <utility>
#include <vector>

#include "native/core/json.h"
#include "native/iql/config.h"
#include "native/iql/iql.h"
#include "native/iql/metrics.h"
#include "native/iql/sampler.h"
#include "native/iql/split.h"
#include "native/iql/standardiser.h"
#include "native/iql/transitions.h"

namespace boq::iql {

/// Chance that a random positive scores above a random negative, ties counted half. NaN where a class is
/// empty.
double area_under_curve(std::span<const float> scores, std::span<const uint8_t> positive);

/// Spearman's rank correlation, ties at their mean rank; NaN where one side is constant.
double rank_correlation(std::span<const float> a, std::span<const float> b);

/// Mean |mean score - share of positives| over `bins` bins of equal size, by rising score.
double calibration_error(std::span<const float> scores, std::span<const uint8_t> positive, int bins = 10);

/// The non-decreasing step function of the scores with the smallest squared error (pool adjacent violators),
/// as its corners (score, chance): between corners it is interpolated, outside it is constant.
std::vector<std::pair<double, double>> isotonic_fit(std::span<const float> scores,
                                                    std::span<const uint8_t> positive);
double isotonic_value(const std::vector<std::pair<double, double>>& corners, double score);

/// Values of the online networks on held-out transitions.
struct HeldOut {
  std::vector<int64_t> transitions;
  std::vector<float> q, v, spread;             ///< of the executed action
  std::vector<std::vector<float>> candidates;  ///< Q of everything that was offered, in its order
};

/// What else predicts the outcome of the same transitions.
struct Baselines {
  std::vector<float> step_rate;  ///< share of successes at this step number in the training episodes
  std::vector<float> task_rate;  ///< of this task
  HeldOut regressor;             ///< in its q and candidates; empty: none was trained
};

/// One entry a model. `limit`: evenly spaced transitions at most, whole otherwise.
std::vector<HeldOut> measure_held_out(const Iql& learner, const std::vector<int64_t>& held_out,
                                      const Transitions& data, const Sampler& sampler, bool with_candidates,
                                      int64_t limit);

/// Trains the regressor where `with_regressor`: a network of Q's form, 256 and 64 wide at most, on the
/// discounted returns of the training transitions, for at most 1,000 steps.
Baselines measure_baselines(const Transitions& data, const Split& split, const Standardisers& standardisers,
                            const IqlConfig& config, at::Device device, bool with_regressor, int64_t limit);

/// A quick look during training: validation/{q_auc,v_auc,q_mse,q_mean,v_mean} over at most 2,048 transitions.
Metrics quick_metrics(const HeldOut& values, const Transitions& data, double gamma);

/// The whole picture, as the offline.json of a model folder; docs/data-formats.md describes the fields.
Json offline_report(const HeldOut& values, const Baselines& baselines, const Transitions& data, double gamma);

/// A map of Q to the chance of success, for config.json: {"kind": "isotonic", "q": [...], "success": [...]}.
Json calibration_map(const HeldOut& values, const Transitions& data);

}  // namespace boq::iql
