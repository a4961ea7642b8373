#include "native/iql/training_run.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <map>
#include <memory>

#include "native/core/clock.h"
#include "native/core/device.h"
#include "native/core/files.h"
#include "native/iql/held_out.h"
#include "native/iql/iql.h"
#include "native/iql/model_folder.h"
#include "native/iql/offline.h"
#include "native/iql/random.h"
#include "native/iql/sampler.h"
#include "native/iql/stepper.h"

namespace boq::iql {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kQuickLook = 2048;     // held-out transitions measured while training goes on
constexpr int64_t kWholeLook = 200'000;  // and at its end

// Of the episodes' outcomes: a checkpoint fits the ones that it was trained on.
std::string digest_of(const std::vector<uint8_t>& values) {
  uint64_t digest = values.size();
  for (const uint8_t value : values) digest = mix_bits(digest ^ value);
  return std::to_string(digest);
}

// One of the models of a run: what is its own.
struct Model {
  ModelPlan plan;
  Metrics metrics = {};
  std::unique_ptr<Sampler> sampler = {};
  std::unique_ptr<MetricsLog> log = {};
};

class Run {
 public:
  Run(const TrainRequest& request, const TrainingData& source, RunPlan plan)
      : request_(request),
        device_(parse_device(request.device)),
        source_(source),
        split_(std::move(plan.split)),
        data_(source.transitions) {
    for (ModelPlan& model : plan.models) models_.push_back({std::move(model)});
    const IqlConfig& config = models_[0].plan.config;
    if (config.shuffle_rewards)
      shuffle_outcomes(data_, config.validation_fraction, static_cast<uint64_t>(config.seed));
    if (config.standardise)
      standardisers_ = standardisers_for(data_, split_.training, config.standardise_clip);
    std::vector<IqlConfig> configs;
    for (const Model& model : models_) configs.push_back(model.plan.config);
    learner_ = std::make_unique<Iql>(configs, data_.width, device_);
    learner_->set_collective(request_.collective);
    for (Model& model : models_) {
      model.plan.identity.outcomes = digest_of(data_.episode_success);
      model.sampler = std::make_unique<Sampler>(data_, split_.training, standardisers_, model.plan.config,
                                                device_, learner_->q().input_dtype());
      if (request_.collective != nullptr)
        model.sampler->set_share(request_.collective->rank(), request_.collective->size());
    }
  }

  int64_t steps_done() const { return learner_->steps_done(); }

  /// `on_progress(step of each model, metrics)`.
  std::vector<TrainSummary> train(const std::function<void(int64_t, const Metrics&)>& on_progress,
                                  const CancelFlag& cancel) {
    const auto start = Clock::now();
    const IqlConfig& config = models_[0].plan.config;
    begin();
    const int64_t log_every = std::max<int64_t>(1, config.steps / 500);
    auto last_report = start - std::chrono::seconds(1);
    std::vector<const Sampler*> samplers;
    for (const Model& model : models_) samplers.push_back(model.sampler.get());
    const auto stepper =
        make_stepper(*learner_, data_, standardisers_, samplers, request_.collective == nullptr);
    while (steps_done() < config.steps && !is_cancelled(cancel)) {
      stepper->advance();
      const int64_t done = steps_done();
      const bool measured =
          done == config.steps || (config.evaluate_every > 0 && done % config.evaluate_every == 0);
      const bool logged = measured || done % log_every == 0 || done == 1;
      const bool saved = done % config.checkpoint_every == 0 && done < config.steps;
      const bool told = seconds_since(last_report) >= 0.1;
      if (!logged && !saved && !told) continue;
      const std::vector<StepReport> reports = stepper->report();  // where the host waits for the device
      if (measured) measure();
      for (size_t m = 0; m < models_.size(); ++m) {
        Model& model = models_[m];
        const Metrics now = metrics_of(reports[m]);
        for (const auto& [name, value] : now) model.metrics[name] = value;
        if (model.log && logged) model.log->add(done, measured ? model.metrics : now);
      }
      if (saved) save_checkpoints();
      if (told) {
        on_progress(done, models_[0].metrics);
        last_report = Clock::now();
      }
    }
    on_progress(steps_done(), models_[0].metrics);
    return end(seconds_since(start));
  }

 private:
  bool is_writer() const { return request_.collective == nullptr || request_.collective->rank() == 0; }

  // Processes that train together stop together.
  bool is_cancelled(const CancelFlag& cancel) const {
    if (request_.collective == nullptr) return cancel.is_cancelled();
    at::Tensor anybody =
        at::full({1}, cancel.is_cancelled() ? 1.0 : 0.0, at::TensorOptions(at::kFloat).device(device_));
    request_.collective->average(anybody);
    return anybody.item<double>() > 0;
  }

  void begin() {
    int64_t step = 0;
    for (size_t m = 0; m < models_.size(); ++m) {
      Model& model = models_[m];
      if (request_.resume && fs::exists(checkpoint_path(model.plan.out))) {
        step = load_checkpoint(model.plan.out, *learner_, static_cast<int64_t>(m), model.plan.identity);
        continue;
      }
      if (!model.plan.start_from.empty())
        load_model(model.plan.start_from, *learner_, static_cast<int64_t>(m),
                   model.plan.identity.fingerprint);
      if (is_writer()) clear_model_folder(model.plan.out);
    }
    learner_->set_steps_done(step);
    if (is_writer())
      for (Model& model : models_)
        model.log = std::make_unique<MetricsLog>(model.plan.out / "metrics.jsonl", step);
  }

  void save_checkpoints() {
    if (!is_writer()) return;
    for (size_t m = 0; m < models_.size(); ++m) {
      models_[m].log->flush();
      save_checkpoint(models_[m].plan.out, *learner_, static_cast<int64_t>(m), models_[m].plan.identity);
    }
  }

  void measure() {
    const auto values =
        measure_held_out(*learner_, split_.validation, data_, *models_[0].sampler, false, kQuickLook);
    for (size_t m = 0; m < models_.size(); ++m)
      for (const auto& [name, value] : quick_metrics(values[m], data_, models_[m].plan.config.gamma))
        models_[m].metrics[name] = value;
  }

  std::vector<TrainSummary> end(double seconds) {
    const IqlConfig& config = models_[0].plan.config;
    const bool stopped = steps_done() < config.steps;
    std::vector<TrainSummary> summaries;
    for (const Model& model : models_)
      summaries.push_back({model.plan.name, steps_done(), stopped, seconds, model.metrics,
                           config.heads * learner_->q().shape().parameter_count(),
                           learner_->v().shape().parameter_count()});
    if (!is_writer()) return summaries;
    if (stopped || config.keep_checkpoint)
      save_checkpoints();
    else
      for (Model& model : models_) model.log->flush();
    save_models(summaries);
    if (!stopped && !config.keep_checkpoint)
      for (const Model& model : models_) fs::remove_all(checkpoint_path(model.plan.out).parent_path());
    return summaries;
  }

  void save_models(const std::vector<TrainSummary>& summaries) {
    // A user who stops the run does not want to wait for the regressor.
    const bool with_regressor = models_[0].plan.config.regressor && !summaries[0].stopped;
    std::map<double, Baselines> baselines;  // by gamma, the only setting of a model that they depend on
    for (const Model& model : models_) {
      const IqlConfig& config = model.plan.config;
      if (baselines.count(config.gamma) > 0) continue;
      baselines[config.gamma] =
          measure_baselines(data_, split_, standardisers_, config, device_, with_regressor, kWholeLook);
    }
    const auto held_out =
        measure_held_out(*learner_, split_.validation, data_, *models_[0].sampler, true, kWholeLook);
    for (size_t m = 0; m < models_.size(); ++m) {
      const ModelPlan& plan = models_[m].plan;
      save_model(plan.out, *learner_, static_cast<int64_t>(m), standardisers_);
      const Json report =
          offline_report(held_out[m], baselines.at(plan.config.gamma), data_, plan.config.gamma);
      write_text(plan.out / "offline.json", report.dump(2) + "\n");
      save_model_config(plan, source_, split_, summaries[m], calibration_map(held_out[m], data_));
    }
  }

  const TrainRequest& request_;
  at::Device device_;
  const TrainingData& source_;
  Split split_;
  Transitions data_;  // a copy: in the shuffled control outcomes are dealt out anew
  std::vector<Model> models_;
  Standardisers standardisers_;
  std::unique_ptr<Iql> learner_;
};

}  // namespace

std::vector<TrainSummary> train_side_by_side(const TrainRequest& request, const TrainingData& data,
                                             RunPlan plan,
                                             const std::function<void(int64_t, const Metrics&)>& on_progress,
                                             const CancelFlag& cancel) {
  return Run(request, data, std::move(plan)).train(on_progress, cancel);
}

}  // namespace boq::iql
