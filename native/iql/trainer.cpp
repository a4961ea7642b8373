#include "native/iql/trainer.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <cctype>
#include <chrono>
#include <cmath>
#include <fstream>
#include <map>
#include <optional>
#include <set>
#include <system_error>

#include "native/core/device.h"
#include "native/iql/checkpoint.h"
#include "native/iql/config.h"
#include "native/iql/iql.h"
#include "native/iql/labels.h"
#include "native/iql/offline.h"
#include "native/iql/random.h"
#include "native/iql/sampler.h"
#include "native/iql/split.h"
#include "native/iql/standardiser.h"
#include "native/iql/stepper.h"
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

std::string digest_of(const std::vector<uint8_t>& values) {
  uint64_t digest = values.size();
  for (const uint8_t value : values) digest = mix_bits(digest ^ value);
  return std::to_string(digest);
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

// One of the models of a run: what is its own.
struct Model {
  std::string name;
  fs::path out;
  IqlConfig config;
  RunIdentity identity;
  Metrics metrics = {};
  std::unique_ptr<Sampler> sampler = {};
  std::unique_ptr<MetricsLog> log = {};
};

// What all models of a request share. Outcomes are dealt out anew in a copy.
struct Source {
  Transitions data;
  Split split;
  fs::path labels;
  Relabelling relabelling;
};

// Models that are trained side by side, from the same step on.
class Run {
 public:
  Run(const TrainRequest& request, const Source& source, std::vector<Model> models)
      : request_(request),
        device_(parse_device(request.device)),
        source_(source),
        data_(source.data),
        models_(std::move(models)) {
    const IqlConfig& config = models_[0].config;
    if (config.shuffle_rewards)
      shuffle_outcomes(data_, config.validation_fraction, static_cast<uint64_t>(config.seed));
    if (config.standardise)
      standardisers_ = standardisers_for(data_, source_.split.training, config.standardise_clip);
    std::vector<IqlConfig> configs;
    for (const Model& model : models_) configs.push_back(model.config);
    learner_ = std::make_unique<Iql>(configs, data_.width, device_);
    learner_->set_collective(request_.collective);
    for (Model& model : models_) {
      model.identity.outcomes = digest_of(data_.episode_success);
      model.sampler = std::make_unique<Sampler>(data_, source_.split.training, standardisers_, model.config,
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
    const IqlConfig& config = models_[0].config;
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
      if (request_.resume && fs::exists(checkpoint_path(model.out))) {
        step = load_checkpoint(model.out, *learner_, static_cast<int64_t>(m), model.identity);
      } else if (is_writer()) {
        forget_earlier_run(model.out);
      }
    }
    learner_->set_steps_done(step);
    if (is_writer())
      for (Model& model : models_)
        model.log = std::make_unique<MetricsLog>(model.out / "metrics.jsonl", step);
  }

  void save_checkpoints() {
    if (!is_writer()) return;
    for (size_t m = 0; m < models_.size(); ++m) {
      models_[m].log->flush();
      save_checkpoint(models_[m].out, *learner_, static_cast<int64_t>(m), models_[m].identity);
    }
  }

  void measure() {
    const auto values =
        measure_held_out(*learner_, source_.split.validation, data_, *models_[0].sampler, false, kQuickLook);
    for (size_t m = 0; m < models_.size(); ++m)
      for (const auto& [name, value] : quick_metrics(values[m], data_, models_[m].config.gamma))
        models_[m].metrics[name] = value;
  }

  // A folder must never show the model of one run with the checkpoint of another.
  static void forget_earlier_run(const fs::path& out) {
    std::error_code ignored;
    fs::remove_all(checkpoint_path(out).parent_path(), ignored);
    for (const char* name : {"config.json", "model.safetensors", "metrics.jsonl", "offline.json"})
      fs::remove(out / name, ignored);
  }

  std::vector<TrainSummary> end(double seconds) {
    const IqlConfig& config = models_[0].config;
    const bool stopped = steps_done() < config.steps;
    if (is_writer()) {
      if (stopped || config.keep_checkpoint)
        save_checkpoints();
      else
        for (Model& model : models_) model.log->flush();
      std::map<double, Baselines> baselines;  // by gamma, the only setting of a model that they depend on
      for (const Model& model : models_) {
        if (baselines.count(model.config.gamma) > 0) continue;
        // A user who stops the run does not want to wait for the regressor.
        baselines[model.config.gamma] = measure_baselines(data_, source_.split, standardisers_, model.config,
                                                          device_, config.regressor && !stopped, kWholeLook);
      }
      const auto held_out =
          measure_held_out(*learner_, source_.split.validation, data_, *models_[0].sampler, true, kWholeLook);
      for (size_t m = 0; m < models_.size(); ++m)
        save_result(models_[m], static_cast<int64_t>(m), held_out[m], baselines.at(models_[m].config.gamma));
    }
    std::vector<TrainSummary> summaries;
    for (const Model& model : models_) {
      if (is_writer() && !stopped && !config.keep_checkpoint)
        fs::remove_all(checkpoint_path(model.out).parent_path());
      summaries.push_back({model.name, steps_done(), stopped, seconds, model.metrics,
                           config.heads * learner_->q().shape().parameter_count(),
                           learner_->v().shape().parameter_count()});
    }
    return summaries;
  }

  // The model first, then config.json, whose presence says that the model is complete.
  void save_result(const Model& model, int64_t number, const HeldOut& held_out, const Baselines& baselines) {
    save_model(model.out, *learner_, number, standardisers_);
    Json sources = Json::array();
    for (const DataSource& source : data_.sources)
      sources.push_back({{"path", source.path},
                         {"transitions", source.transitions},
                         {"episodes", source.episodes},
                         {"successRate", source.success_rate}});
    write_text(model.out / "offline.json",
               offline_report(held_out, baselines, data_, model.config.gamma).dump(2) + "\n");
    const Split& split = source_.split;
    Json config = {{"version", kModelVersion},
                   {"kind", "iql"},
                   {"width", data_.width},
                   {"heads", model.config.heads},
                   {"fingerprint", data_.fingerprint},
                   {"profile", data_.profile},
                   {"config", model.identity.config},
                   {"parameters",
                    {{"q", model.config.heads * learner_->q().shape().parameter_count()},
                     {"v", learner_->v().shape().parameter_count()}}},
                   {"data", sources},
                   {"split",
                    {{"validationFraction", model.config.validation_fraction},
                     {"trainingEpisodes", split.training_episodes},
                     {"validationEpisodes", split.validation_episodes},
                     {"trainingTransitions", split.training.size()},
                     {"validationTransitions", split.validation.size()},
                     {"trainingSuccessRate", split.training_success_rate}}},
                   {"steps", steps_done()},
                   {"metrics", model.metrics},
                   {"calibration", calibration_map(held_out, data_)}};
    if (!source_.labels.empty())
      config["labels"] = {{"path", source_.labels.string()},
                          {"episodes", source_.relabelling.episodes},
                          {"changed", source_.relabelling.changed}};
    write_text(model.out / "config.json", config.dump(2) + "\n");
  }

  const TrainRequest& request_;
  at::Device device_;
  const Source& source_;
  Transitions data_;
  std::vector<Model> models_;
  Standardisers standardisers_;
  std::unique_ptr<Iql> learner_;
};

// A setting's value as a part of a folder's name: tau 0.6 -> tau-0.6, hidden [512, 64] -> hidden-512x64.
std::string name_of(const std::string& key, const Json& value) {
  std::string text;
  for (const char c : value.is_string() ? value.get<std::string>() : value.dump())
    if (c == ',')
      text += 'x';
    else if (std::isalnum(static_cast<unsigned char>(c)) || c == '.' || c == '-' || c == '+')
      text += c;
  return key + "-" + text;
}

// Every combination of the sweep's values and the seeds: (name, configuration).
std::vector<std::pair<std::string, Json>> variants_of(const TrainRequest& request) {
  std::vector<std::pair<std::string, Json>> variants = {{"", request.config}};
  const auto multiply = [&](const std::string& key, const std::vector<Json>& values) {
    std::vector<std::pair<std::string, Json>> next;
    for (const auto& [name, config] : variants) {
      for (const Json& value : values) {
        next.emplace_back(name + (name.empty() ? "" : "-") + name_of(key, value), config);
        next.back().second[key] = value;
      }
    }
    variants = std::move(next);
  };
  for (const auto& [key, values] : request.sweep) {
    BOQ_CHECK(!values.empty(), ErrorCode::kConfigInvalid, "the sweep of ", key, " has no values");
    multiply(key, values);
  }
  BOQ_CHECK(request.seeds >= 1 && request.seeds <= 1000, ErrorCode::kConfigInvalid,
            "expected 1 to 1,000 seeds, got ", request.seeds);
  if (request.seeds > 1) {
    BOQ_CHECK(request.sweep.count("seed") == 0, ErrorCode::kConfigInvalid,
              "seeds and a sweep of seed exclude each other");
    const auto first = request.config.value("seed", int64_t{0});
    std::vector<Json> seeds;
    for (int64_t i = 0; i < request.seeds; ++i) seeds.emplace_back(first + i);
    multiply("seed", seeds);
  }
  std::set<std::string> names;
  for (const auto& [name, config] : variants)
    BOQ_CHECK(names.insert(name).second, ErrorCode::kConfigInvalid,
              "two models of the sweep would be called ", name);
  return variants;
}

// A model of a sweep that an earlier call finished.
std::optional<TrainSummary> finished(const Model& model) {
  const fs::path path = model.out / "config.json";
  if (!fs::exists(path) || fs::exists(checkpoint_path(model.out))) return {};
  const Json json = read_json_file(path);
  if (json.value("config", Json()) != model.identity.config ||
      json.value("steps", int64_t{0}) != model.config.steps ||
      json.value("fingerprint", "") != model.identity.fingerprint)
    return {};
  return TrainSummary{model.name,
                      model.config.steps,
                      false,
                      0,
                      json.at("metrics").get<Metrics>(),
                      json.at("parameters").at("q").get<int64_t>(),
                      json.at("parameters").at("v").get<int64_t>()};
}

}  // namespace

std::vector<TrainSummary> train_models(const TrainRequest& request,
                                       const std::function<void(const TrainProgress&)>& on_progress,
                                       const CancelFlag& cancel) {
  const c10::NoGradGuard no_grad;
  const auto start = Clock::now();
  const at::Device device = parse_device(request.device);
  Source source{Transitions::load(request.data), {}, request.labels, {}};
  if (!request.labels.empty()) source.relabelling = apply_labels(source.data, request.data, request.labels);

  // Models in the order of their names' making; those that can share a run stand together.
  std::vector<std::pair<Split, std::vector<Model>>> groups;
  std::map<std::string, TrainSummary> summaries;
  std::vector<std::string> order;
  int64_t total = 0;
  for (const auto& [name, options] : variants_of(request)) {
    Split split = split_of(source.data, validation_fraction_of(options));
    Model model{
        name,
        request.out / name,
        resolve_config(options, {static_cast<int64_t>(split.training.size()), split.training_success_rate}),
        {}};
    if (name.empty()) model.out = request.out;
    model.config.precision = resolve_precision(model.config.precision, device);
    require_trainable(split, model.config.allow_single_outcome);
    model.identity = {source.data.fingerprint, source.data.width, static_cast<int64_t>(split.training.size()),
                      "", config_to_json(model.config)};
    order.push_back(name);
    if (const auto done = finished(model); request.resume && !name.empty() && done) {
      summaries[name] = *done;
      continue;
    }
    total += model.config.steps;
    const auto belongs = [&](const auto& group) {
      const Model& first = group.second.front();
      return can_share_run(first.config, model.config) &&
             (!request.resume || checkpoint_step(first.out) == checkpoint_step(model.out));
    };
    const auto group = std::find_if(groups.begin(), groups.end(), belongs);
    if (group == groups.end()) {
      groups.emplace_back(std::move(split), std::vector<Model>());
      groups.back().second.push_back(std::move(model));
    } else {
      group->second.push_back(std::move(model));
    }
  }

  int64_t before = 0, first = -1;
  bool stopped = false;
  for (auto& [split, models] : groups) {
    if (stopped) {
      for (const Model& model : models) summaries[model.name] = {model.name, 0, true, 0, {}, 0, 0};
      continue;
    }
    source.split = std::move(split);
    const auto count = static_cast<int64_t>(models.size());
    Run run(request, source, std::move(models));
    const auto report = [&](int64_t step, const Metrics& metrics) {
      const int64_t done = before + count * step;
      if (first < 0) first = done - count;
      const double rate = static_cast<double>(done - first) / std::max(1e-9, seconds_since(start));
      if (on_progress) on_progress({done, total, rate, metrics});
    };
    for (TrainSummary& summary : run.train(report, cancel)) {
      before += summary.steps;
      stopped = stopped || summary.stopped;
      summaries[summary.name] = std::move(summary);
    }
  }
  std::vector<TrainSummary> result;
  for (const std::string& name : order) result.push_back(summaries.at(name));
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
