// What held-out episodes say about a Q-function. Every figure stands beside what simpler predictors reach on
// the same transitions: V alone, the number of the step, the task, and a regressor of the return on the same
// features. A Q that only counts steps or knows tasks apart must show up as such.
#pragma once

#include "native/core/json.h"
#include "native/iql/held_out.h"
#include "native/iql/metrics.h"
#include "native/iql/transitions.h"

namespace boq::iql {

/// A quick look during training: validation/{q_auc,v_auc,q_mse,q_mean,v_mean}, those that can be measured.
/// `gamma` discounts the returns that q_mse compares with.
Metrics quick_metrics(const HeldOut& values, const Transitions& data, double gamma);

/// The whole picture, as the offline.json of a model folder; docs/data-formats.md describes the fields.
Json offline_report(const HeldOut& values, const Baselines& baselines, const Transitions& data, double gamma);

/// A map of Q to the chance of success, for config.json: {"kind": "isotonic", "q": [...], "success": [...]}.
Json calibration_map(const HeldOut& values, const Transitions& data);

}  // namespace boq::iql
