#include "native/iql/trainer.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <map>
#include <utility>

#include "native/core/clock.h"
#include "native/core/device.h"
#include "native/iql/checkpoint.h"
#include "native/iql/config.h"
#include "native/iql/iql.h"
#include "native/iql/labels.h"
#include "native/iql/model_folder.h"
#include "native/iql/split.h"
#include "native/iql/training_run.h"
#include "native/iql/transitions.h"

namespace boq::iql {
namespace {

void require_trainable(const Split& split, bool allow_single_outcome) {
  BOQ_CHECK(!split.training.empty(), ErrorCode::kDataEmpty,
            "expected episodes to train on, but all of them fall into the validation split; collect more "
            "episodes or "
            "lower validationFraction");
  const double rate = split.training_success_rate;
  BOQ_CHECK(allow_single_outcome || (rate > 0 && rate < 1), ErrorCode::kDataInvalid,
            "expected successful and failed episodes to learn the difference from, but ",
            rate > 0 ? "all" : "none", " of the ", split.training_episodes,
            " training episodes succeeded; collect others, or set allowSingleOutcome");
}

std::string resolve_precision(const std::string& wanted, const at::Device& device) {
  if (wanted != "auto") return wanted;
  return device.is_cpu() && has_cpu_bf16() ? "bfloat16" : "float32";
}

// What a request comes to: the runs that there are to do, and what an earlier call has done already.
struct Schedule {
  std::vector<RunPlan> runs;
  std::vector<std::string> names;  // of all models, in the order of the sweep
  std::map<std::string, TrainSummary> finished;
  int64_t steps = 0;  // of all models that are to be trained
};

Schedule schedule_of(const TrainRequest& request, const TrainingData& data, const at::Device& device) {
  Schedule schedule;
  for (const auto& [name, options] : variants_of(request.config, request.sweep, request.seeds)) {
    Split split = split_of(data.transitions, validation_fraction_of(options));
    ModelPlan plan{
        name,
        name.empty() ? request.out : request.out / name,
        resolve_config(options, {static_cast<int64_t>(split.training.size()), split.training_success_rate}),
        {}};
    plan.config.precision = resolve_precision(plan.config.precision, device);
    require_trainable(split, plan.config.allow_single_outcome);
    plan.identity = {data.transitions.fingerprint, data.transitions.width,
                     static_cast<int64_t>(split.training.size()), "", config_to_json(plan.config)};
    plan.start_from = request.start_from;
    schedule.names.push_back(name);
    if (const auto done = finished_model(plan); request.resume && !name.empty() && done) {
      schedule.finished[name] = *done;
      continue;
    }
    schedule.steps += plan.config.steps;
    const auto belongs = [&](const RunPlan& run) {
      const ModelPlan& first = run.models.front();
      return can_share_run(first.config, plan.config) &&
             (!request.resume || checkpoint_step(first.out) == checkpoint_step(plan.out));
    };
    auto run = std::find_if(schedule.runs.begin(), schedule.runs.end(), belongs);
    if (run == schedule.runs.end()) run = schedule.runs.insert(run, RunPlan{std::move(split), {}});
    run->models.push_back(std::move(plan));
  }
  return schedule;
}

}  // namespace

std::vector<TrainSummary> train_models(const TrainRequest& request,
                                       const std::function<void(const TrainProgress&)>& on_progress,
                                       const CancelFlag& cancel) {
  const c10::NoGradGuard no_grad;
  const auto start = Clock::now();
  const at::Device device = parse_device(request.device);
  TrainingData data{Transitions::load(request.data), request.labels, {}};
  if (!request.labels.empty())
    data.relabelling = apply_labels(data.transitions, request.data, request.labels);
  Schedule schedule = schedule_of(request, data, device);

  std::map<std::string, TrainSummary> summaries = std::move(schedule.finished);
  int64_t before = 0, first = -1;
  bool stopped = false;
  for (RunPlan& run : schedule.runs) {
    if (stopped) {
      for (const ModelPlan& plan : run.models) summaries[plan.name] = {plan.name, 0, true, 0, {}, 0, 0};
      continue;
    }
    const auto count = static_cast<int64_t>(run.models.size());
    const auto report = [&](int64_t step, const Metrics& metrics) {
      const int64_t done = before + count * step;
      if (first < 0) first = done - count;
      const double rate = static_cast<double>(done - first) / std::max(1e-9, seconds_since(start));
      if (on_progress) on_progress({done, schedule.steps, rate, metrics});
    };
    for (TrainSummary& summary : train_side_by_side(request, data, std::move(run), report, cancel)) {
      before += summary.steps;
      stopped = stopped || summary.stopped;
      summaries[summary.name] = std::move(summary);
    }
  }
  std::vector<TrainSummary> result;
  for (const std::string& name : schedule.names) result.push_back(summaries.at(name));
  return result;
}

Json summary_to_json(const std::vector<TrainSummary>& summaries) {
  Json models = Json::array();
  for (const TrainSummary& each : summaries)
    models.push_back({{"name", each.name},
                      {"steps", each.steps},
                      {"stopped", each.stopped},
                      {"seconds", each.seconds},
                      {"metrics", each.metrics},
                      {"parameters", {{"q", each.q_parameters}, {"v", each.v_parameters}}}});
  Json json = models.at(0);
  json.erase("name");
  for (const TrainSummary& each : summaries) json["stopped"] = json["stopped"].get<bool>() || each.stopped;
  json["models"] = std::move(models);
  return json;
}

}  // namespace boq::iql
