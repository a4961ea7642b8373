#include "native/iql/trainer.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>

#include <chrono>
#include <cmath>
#include <fstream>
#include <system_error>

#include "native/core/device.h"
#include "native/iql/checkpoint.h"
#include "native/iql/config.h"
#include "native/iql/iql.h"
#include "native/iql/offline.h"
#include "native/iql/transitions.h"

namespace boq::iql {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

constexpr int kModelVersion = 1;
constexpr int64_t kQuickLook = 2048;     // held-out transitions measured while training goes on
constexpr int64_t kWholeLook = 200'000;  // and at its end

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

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

// metrics.jsonl: one object a line, the step first among equals.
class MetricsLog {
 public:
  /// Keeps the lines up to `last_step`; what came after the checkpoint will be written again.
  MetricsLog(const fs::path& path, int64_t last_step) : path_(path) {
    std::string kept;
    std::ifstream old(path);
    for (std::string line; last_step > 0 && std::getline(old, line);) {
      const Json json = Json::parse(line, nullptr, /*allow_exceptions=*/false);
      if (json.is_object() && json.value("step", int64_t{0}) > 0 &&
          json.value("step", int64_t{0}) <= last_step)
        kept += line + "\n";
    }
    old.close();
    write_text(path, kept);
    stream_.open(path, std::ios::app);
  }

  void add(int64_t step, const Metrics& metrics) {
    Json json = metrics;
    json["step"] = step;
    stream_ << json.dump() << '\n';
  }

  /// Throws BOQ_FILE_WRITE where the disk did not take a line.
  void flush() {
    stream_.flush();
    BOQ_CHECK(stream_.good(), ErrorCode::kFileWrite, "cannot write ", path_.string(), "; is the disk full?");
  }

 private:
  fs::path path_;
  std::ofstream stream_;
};

Metrics metrics_of(const StepReport& report) {
  return {{"loss/v", report.loss_v},
          {"loss/q", report.loss_q},
          {"value/v_mean", report.v_mean},
          {"value/q_mean", report.q_mean},
          {"value/adv_mean", report.advantage},
          {"grad/v_norm", report.v_norm},
          {"grad/q_norm", report.q_norm},
          {"lr", report.learning_rate}};
}

class Run {
 public:
  explicit Run(const TrainRequest& request)
      : out_(request.out),
        device_(parse_device(request.device)),
        data_(Transitions::load(request.data)),
        split_(split_of(data_, validation_fraction_of(request.config))),
        config_(resolve_config(
            request.config, {static_cast<int64_t>(split_.training.size()), split_.training_success_rate})) {
    require_trainable(split_, config_.allow_single_outcome);
    config_.precision = resolve_precision(config_.precision, device_);
    const auto seed = static_cast<uint64_t>(config_.seed);
    if (config_.shuffle_rewards) shuffle_outcomes(data_, config_.validation_fraction, seed);
    if (config_.standardise)
      standardisers_ = standardisers_for(data_, split_.training, config_.standardise_clip);
    learner_ = std::make_unique<Iql>(config_, data_.width, device_);
    sampler_ = std::make_unique<Sampler>(data_, split_.training, standardisers_, config_, device_,
                                         learner_->q().input_dtype());
    identity_ = {data_.fingerprint, data_.width, static_cast<int64_t>(split_.training.size()),
                 config_to_json(config_)};
  }

  TrainSummary train(bool resume, const std::function<void(const TrainProgress&)>& on_progress,
                     const CancelFlag& cancel) {
    const auto start = Clock::now();
    TrainSummary summary;
    summary.q_parameters = config_.heads * learner_->q().shape().parameter_count();
    summary.v_parameters = learner_->v().shape().parameter_count();
    if (resume && fs::exists(checkpoint_path(out_))) {
      load_checkpoint(out_, *learner_, identity_);
    } else {
      forget_earlier_run();
    }
    MetricsLog log(out_ / "metrics.jsonl", learner_->steps_done());
    const int64_t log_every = std::max<int64_t>(1, config_.steps / 500);
    const int64_t first = learner_->steps_done();
    auto last_report = start - std::chrono::seconds(1);
    const auto report = [&] {
      const double rate =
          static_cast<double>(learner_->steps_done() - first) / std::max(1e-9, seconds_since(start));
      if (on_progress) on_progress({learner_->steps_done(), config_.steps, rate, metrics_});
      last_report = Clock::now();
    };

    while (learner_->steps_done() < config_.steps && !cancel.is_cancelled()) {
      const StepReport step = learner_->step(sampler_->batch(learner_->steps_done()));
      const int64_t done = learner_->steps_done();
      const bool measured =
          done == config_.steps || (config_.evaluate_every > 0 && done % config_.evaluate_every == 0);
      for (const auto& [name, value] : metrics_of(step)) metrics_[name] = value;
      if (measured) measure();
      if (measured || done % log_every == 0 || done == 1)
        log.add(done, measured ? metrics_ : metrics_of(step));
      if (done % config_.checkpoint_every == 0 && done < config_.steps) {
        log.flush();
        save_checkpoint(out_, *learner_, identity_);
      }
      if (seconds_since(last_report) >= 0.1) report();
    }
    log.flush();
    summary.stopped = learner_->steps_done() < config_.steps;
    if (summary.stopped || config_.keep_checkpoint) save_checkpoint(out_, *learner_, identity_);
    save_result(summary);
    if (!summary.stopped && !config_.keep_checkpoint) fs::remove_all(checkpoint_path(out_).parent_path());
    report();
    summary.steps = learner_->steps_done();
    summary.seconds = seconds_since(start);
    summary.metrics = metrics_;
    return summary;
  }

 private:
  void measure() {
    const HeldOut values =
        measure_held_out(*learner_, split_.validation, data_, *sampler_, false, kQuickLook);
    for (const auto& [name, value] : quick_metrics(values, data_, config_.gamma)) metrics_[name] = value;
  }

  // A folder must never show the model of one run with the checkpoint of another.
  void forget_earlier_run() const {
    std::error_code ignored;
    fs::remove_all(checkpoint_path(out_).parent_path(), ignored);
    for (const char* name : {"config.json", "model.safetensors", "metrics.jsonl"})
      fs::remove(out_ / name, ignored);
  }

  // The model first, then config.json, whose presence says that the model is complete.
  void save_result(const TrainSummary& summary) {
    save_model(out_, *learner_, standardisers_);
    Json sources = Json::array();
    for (const DataSource& source : data_.sources)
      sources.push_back({{"path", source.path},
                         {"transitions", source.transitions},
                         {"episodes", source.episodes},
                         {"successRate", source.success_rate}});
    const HeldOut held_out =
        measure_held_out(*learner_, split_.validation, data_, *sampler_, true, kWholeLook);
    write_text(out_ / "offline.json", offline_report(held_out, data_, config_.gamma).dump(2) + "\n");
    const Json config = {{"version", kModelVersion},
                         {"kind", "iql"},
                         {"width", data_.width},
                         {"heads", config_.heads},
                         {"fingerprint", data_.fingerprint},
                         {"profile", data_.profile},
                         {"config", config_to_json(config_)},
                         {"parameters", {{"q", summary.q_parameters}, {"v", summary.v_parameters}}},
                         {"data", sources},
                         {"split",
                          {{"validationFraction", config_.validation_fraction},
                           {"trainingEpisodes", split_.training_episodes},
                           {"validationEpisodes", split_.validation_episodes},
                           {"trainingTransitions", split_.training.size()},
                           {"validationTransitions", split_.validation.size()},
                           {"trainingSuccessRate", split_.training_success_rate}}},
                         {"steps", learner_->steps_done()},
                         {"metrics", metrics_},
                         {"calibration", calibration_map(held_out, data_)}};
    write_text(out_ / "config.json", config.dump(2) + "\n");
  }

  fs::path out_;
  at::Device device_;
  Transitions data_;
  Split split_;
  IqlConfig config_;
  Standardisers standardisers_;
  std::unique_ptr<Iql> learner_;
  std::unique_ptr<Sampler> sampler_;
  RunIdentity identity_;
  Metrics metrics_;
};

}  // namespace

TrainSummary train(const TrainRequest& request, const std::function<void(const TrainProgress&)>& on_progress,
                   const CancelFlag& cancel) {
  const c10::NoGradGuard no_grad;
  return Run(request).train(request.resume, on_progress, cancel);
}

}  // namespace boq::iql
