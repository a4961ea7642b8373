// Training as one call: embedding folders in, a model folder out, a checkpoint at every moment in between.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "native/core/control.h"
#include "native/core/json.h"

namespace boq::iql {

/// Named values of one moment: loss/v, loss/q, value/v_mean, value/q_mean, value/adv_mean, grad/v_norm,
/// grad/q_norm, lr, and, where they were measured, validation/*.
using Metrics = std::map<std::string, double>;

struct TrainRequest {
  /// Embedding folders, all of one fingerprint.
  std::vector<std::filesystem::path> data;
  /// Model folder to write. While training goes on it holds checkpoint/ and metrics.jsonl.
  std::filesystem::path out;
  /// cpu | cuda | cuda:N
  std::string device = "cpu";
  /// The preset's name and whatever differs from it; see config.h.
  Json config = Json::object();
  /// Goes on from the checkpoint in `out`; starts anew where there is none.
  bool resume = false;
};

struct TrainProgress {
  int64_t step = 0;
  int64_t steps = 0;
  double steps_per_second = 0;
  Metrics metrics;
};

struct TrainSummary {
  int64_t steps = 0;
  /// True where the caller ended the run before its last step; model and checkpoint are complete either way.
  bool stopped = false;
  double seconds = 0;
  Metrics metrics;
  /// Parameters of all Q heads, and of V.
  int64_t q_parameters = 0;
  int64_t v_parameters = 0;
};

/// Trains Q and V. `on_progress` is called from this thread, at most ten times a second and once at the end.
/// Setting `cancel` ends the run after the step in progress: no exception, `stopped` is true. Throws
/// boq::Error: CONFIG_INVALID, DATA_EMPTY, DATA_INVALID, FINGERPRINT_MISMATCH, SHAPE_MISMATCH, FILE_*,
/// CHECKPOINT_INVALID, NOT_FINITE (the checkpoint of the last good step stays).
TrainSummary train(const TrainRequest& request, const std::function<void(const TrainProgress&)>& on_progress,
                   const CancelFlag& cancel);

}  // namespace boq::iql
