// One batched run: models that differ in numbers only, trained side by side from the same step on, measured,
// logged and saved as they go.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "native/core/control.h"
#include "native/iql/checkpoint.h"
#include "native/iql/config.h"
#include "native/iql/labels.h"
#include "native/iql/metrics.h"
#include "native/iql/split.h"
#include "native/iql/trainer.h"
#include "native/iql/transitions.h"

namespace boq::iql {

/// One model that is to be trained.
struct ModelPlan {
  std::string name;                       ///< as in TrainSummary
  std::filesystem::path out;              ///< its folder
  IqlConfig config;                       ///< resolved, its precision too
  RunIdentity identity;                   ///< all but `outcomes`
  std::filesystem::path start_from = {};  ///< as in TrainRequest
};

/// Models that can share a run (see can_share_run), and the split of the data that they share.
struct RunPlan {
  Split split;
  std::vector<ModelPlan> models;
};

/// What all models of a request are trained on.
struct TrainingData {
  Transitions transitions;
  std::filesystem::path labels;  ///< empty: none
  Relabelling relabelling;
};

/// Trains the models of one run, with `resume` from their checkpoints, which must be of one step. Of the
/// request it takes device, resume and collective. `on_progress(step of each model, metrics of the first)` is
/// called at most ten times a second and once at the end. Returns one summary a model, in order. Throws as
/// train_models does.
std::vector<TrainSummary> train_side_by_side(const TrainRequest& request, const TrainingData& data,
                                             RunPlan plan,
                                             const std::function<void(int64_t, const Metrics&)>& on_progress,
                                             const CancelFlag& cancel);

}  // namespace boq::iql
