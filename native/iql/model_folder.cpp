#include "native/iql/model_folder.h"

#include <ATen/ATen.h>

#include <string>
#include <system_error>

#include "native/core/files.h"
#include "native/core/json.h"
#include "native/core/safetensors.h"
#include "native/iql/checkpoint.h"

namespace boq::iql {

namespace fs = std::filesystem;

namespace {

constexpr int kModelVersion = 1;

// Views of everything that the `model`-th model of the learner has learned, by their names in
// model.safetensors.
NamedTensors parameters_of(Iql& learner, int64_t model) {
  NamedTensors tensors;
  // The heads of one model, numbered from 0; V has one, without a number.
  const auto add = [&](const std::string& prefix, const Network& network, bool numbered) {
    const auto views = network.named_views(network.parameters());
    const size_t count = views.size() / static_cast<size_t>(learner.models()),
                 first = static_cast<size_t>(model) * count;
    const size_t layers = views.size() / static_cast<size_t>(network.heads());
    for (size_t i = 0; i < count; ++i) {
      const auto& [name, view] = views[first + i];
      const std::string layer = name.substr(name.find('.') + 1);
      tensors.emplace_back(prefix + (numbered ? std::to_string(i / layers) + "." : "") + layer, view);
    }
  };
  add("q.", learner.q(), true);
  add("v.", learner.v(), false);
  add("target.", learner.target(), true);
  return tensors;
}

}  // namespace

void clear_model_folder(const fs::path& out) {
  std::error_code ignored;
  fs::remove_all(checkpoint_path(out).parent_path(), ignored);
  for (const char* name : {"config.json", "model.safetensors", "metrics.jsonl", "offline.json"})
    fs::remove(out / name, ignored);
}

void save_model(const fs::path& out, Iql& learner, int64_t model, const Standardisers& standardisers) {
  make_folder(out);
  NamedTensors tensors = parameters_of(learner, model);
  const auto add_norm = [&](const std::string& stream, const Standardiser& standardiser) {
    if (standardiser.is_identity()) return;
    tensors.emplace_back("norm." + stream + ".mean", standardiser.mean);
    tensors.emplace_back("norm." + stream + ".std", standardiser.std);
  };
  add_norm("state", standardisers.state);
  add_norm("action", standardisers.action);
  add_norm("task", standardisers.task);
  write_safetensors(out / "model.safetensors", tensors, {{"format", "pt"}});
}

void load_model(const fs::path& from, Iql& learner, int64_t model, const std::string& fingerprint) {
  const fs::path config_path = from / "config.json";
  BOQ_CHECK(fs::exists(config_path), ErrorCode::kFileNotFound, from.string(),
            ": expected a trained model to start from (config.json is missing)");
  const Json json = read_json_file(config_path);
  const JsonView config(json, config_path.string());
  BOQ_CHECK(config.at("fingerprint").as_string() == fingerprint, ErrorCode::kFingerprintMismatch,
            from.string(), ": expected a model of the embeddings that it is to learn from, ", fingerprint,
            ", but it was trained on ", config.at("fingerprint").as_string());
  const auto file = SafetensorsFile::open(from / "model.safetensors");
  for (auto& [name, view] : parameters_of(learner, model)) {
    BOQ_CHECK(file.contains(name) && file.info(name).shape == view.sizes().vec(), ErrorCode::kShapeMismatch,
              from.string(), ": expected ", name, " of shape ", view.sizes(),
              "; start from a model of the same networks");
    view.copy_(file.tensor(name));
  }
  learner.q().parameters_changed();
  learner.v().parameters_changed();
  learner.target_changed();
}

void save_model_config(const ModelPlan& plan, const TrainingData& data, const Split& split,
                       const TrainSummary& summary, const Json& calibration) {
  Json sources = Json::array();
  for (const DataSource& source : data.transitions.sources)
    sources.push_back({{"path", source.path},
                       {"transitions", source.transitions},
                       {"episodes", source.episodes},
                       {"successRate", source.success_rate}});
  Json config = {{"version", kModelVersion},
                 {"kind", "iql"},
                 {"width", data.transitions.width},
                 {"heads", plan.config.heads},
                 {"fingerprint", data.transitions.fingerprint},
                 {"profile", data.transitions.profile},
                 {"config", plan.identity.config},
                 {"parameters", {{"q", summary.q_parameters}, {"v", summary.v_parameters}}},
                 {"data", sources},
                 {"split",
                  {{"validationFraction", plan.config.validation_fraction},
                   {"trainingEpisodes", split.training_episodes},
                   {"validationEpisodes", split.validation_episodes},
                   {"trainingTransitions", split.training.size()},
                   {"validationTransitions", split.validation.size()},
                   {"trainingSuccessRate", split.training_success_rate}}},
                 {"steps", summary.steps},
                 {"metrics", summary.metrics},
                 {"calibration", calibration},
                 {"startedFrom", plan.start_from.empty() ? Json() : Json(plan.start_from.string())}};
  if (!data.labels.empty())
    config["labels"] = {{"path", data.labels.string()},
                        {"episodes", data.relabelling.episodes},
                        {"changed", data.relabelling.changed}};
  write_text(plan.out / "config.json", config.dump(2) + "\n");
}

std::optional<TrainSummary> finished_model(const ModelPlan& plan) {
  const fs::path path = plan.out / "config.json";
  if (!fs::exists(path) || fs::exists(checkpoint_path(plan.out))) return {};
  const Json json = read_json_file(path);
  if (json.value("config", Json()) != plan.identity.config ||
      json.value("steps", int64_t{0}) != plan.config.steps ||
      json.value("fingerprint", "") != plan.identity.fingerprint)
    return {};
  return TrainSummary{plan.name,
                      plan.config.steps,
                      false,
                      0,
                      json.at("metrics").get<Metrics>(),
                      json.at("parameters").at("q").get<int64_t>(),
                      json.at("parameters").at("v").get<int64_t>()};
}

}  // namespace boq::iql
