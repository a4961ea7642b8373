// Training as one call: embedding folders in, a model folder out (several, where seeds or settings are
// compared), a checkpoint at every moment in between.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "native/core/control.h"
#include "native/core/json.h"
#include "native/iql/metrics.h"
#include "native/iql/sweep.h"

namespace boq::iql {

class Collective;

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
  /// Model folder whose weights training starts from; empty: from new ones.
  std::filesystem::path start_from = {};
  /// Labels that replace the recorded outcomes; empty: none. See labels.h.
  std::filesystem::path labels = {};
  /// Above 1: as many models, with the seeds from the configuration's on, each in a folder of `out` named
  /// after what sets it apart (seed-0, tau-0.6, tau-0.6-seed-0). The same for every combination of values in
  /// `sweep`.
  int64_t seeds = 1;
  /// Settings and the values to compare.
  Sweep sweep = {};
  /// The processes that train together; null: this one alone. Only rank 0 writes.
  Collective* collective = nullptr;
};

struct TrainProgress {
  int64_t step = 0;  ///< of all models together
  int64_t steps = 0;
  double steps_per_second = 0;
  Metrics metrics;  ///< of the first of the models in training
};

/// How the training of one model ended.
struct TrainSummary {
  /// Its folder in `out`; empty where it is `out` itself.
  std::string name;
  int64_t steps = 0;
  /// True where the caller ended the run before its last step; model and checkpoint are complete either way.
  bool stopped = false;
  double seconds = 0;
  Metrics metrics;
  /// Parameters of all Q heads, and of V.
  int64_t q_parameters = 0;
  int64_t v_parameters = 0;
};

/// Trains Q and V. Models that differ in numbers only (see can_share_run) share one batched run and come out
/// as they would alone: to the bit on a CPU. Others follow one another. With `resume`, models of a sweep that
/// are complete are kept as they are. `on_progress` is called from this thread, at most ten times a second
/// and once at the end. Setting `cancel` ends the run after the step in progress: no exception, `stopped` is
/// true. Throws boq::Error: CONFIG_INVALID, DATA_EMPTY, DATA_INVALID, FINGERPRINT_MISMATCH, SHAPE_MISMATCH,
/// FILE_*, CHECKPOINT_INVALID, NOT_FINITE (the checkpoint of the last good step stays).
std::vector<TrainSummary> train_models(const TrainRequest& request,
                                       const std::function<void(const TrainProgress&)>& on_progress,
                                       const CancelFlag& cancel);

/// {steps, stopped, seconds, metrics, parameters: {q, v}} of the first model, and `models`: the same of each
/// with its name.
Json summary_to_json(const std::vector<TrainSummary>& summaries);

/// The same where there is one model.
inline TrainSummary train(const TrainRequest& request,
                          const std::function<void(const TrainProgress&)>& on_progress,
                          const CancelFlag& cancel) {
  return train_models(request, on_progress, cancel).at(0);
}

}  // namespace boq::iql
