#include "native/iql/scorer.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <c10/core/GradMode.h>

#include <numeric>
#include <utility>

#include "native/core/device.h"
#include "native/core/error.h"
#include "native/core/json.h"
#include "native/core/safetensors.h"
#include "native/iql/config.h"
#include "native/iql/iql.h"
#include "native/iql/packed.h"
#include "native/iql/standardiser.h"

namespace boq::iql {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kManyStates = 16;

void load_network(const SafetensorsFile& file, const std::string& prefix, bool numbered, Network& network,
                  std::vector<std::string>& taken) {
  for (auto& [name, view] : network.named_views(network.parameters())) {
    const std::string full = prefix + (numbered ? name : name.substr(2));
    const at::Tensor stored = file.tensor(full);
    BOQ_CHECK(stored.sizes() == view.sizes(), ErrorCode::kShapeMismatch, file.path().string(), ": expected ",
              full, " of shape ", view.sizes(), ", got ", stored.sizes());
    view.copy_(stored);
    taken.push_back(full);
  }
  network.parameters_changed();
}

Standardiser load_standardiser(const SafetensorsFile& file, const std::string& stream, int64_t width,
                               double clip, at::Device device) {
  const std::string mean = "norm." + stream + ".mean", std = "norm." + stream + ".std";
  if (!file.contains(mean)) return {};
  Standardiser result{file.tensor(mean).to(device, at::kFloat), file.tensor(std).to(device, at::kFloat),
                      clip};
  for (const auto& tensor : {result.mean, result.std})
    BOQ_CHECK(tensor.dim() == 1 && tensor.size(0) == width, ErrorCode::kShapeMismatch, file.path().string(),
              ": norm.", stream, " must hold ", width, " numbers, got shape ", tensor.sizes());
  return result;
}

}  // namespace

struct Scorer::Model {
  IqlConfig config;
  int64_t width = 0;
  std::string fingerprint;
  at::Device device = at::kCPU;
  Network q, v;                      // elsewhere than on the CPU
  PackedNetwork packed_q, packed_v;  // on the CPU
  Standardisers standardisers;

  /// [K, C] and [S]; state and task have a row for every state, action and owner one for every candidate.
  at::Tensor q_of(const at::Tensor& state, const at::Tensor& action, const at::Tensor& task,
                  const at::Tensor& owner) const;
  at::Tensor v_of(const at::Tensor& state, const at::Tensor& task) const;
};

at::Tensor Scorer::Model::q_of(const at::Tensor& state, const at::Tensor& action, const at::Tensor& task,
                               const at::Tensor& owner) const {
  const NetworkShape shape = q_shape(config, width);
  if (!device.is_cpu()) {
    const at::Tensor index = owner.to(device);
    return values_of(config, q.forward(select_inputs(shape, state.index_select(0, index), action,
                                                     task.index_select(0, index))));
  }
  const int64_t* owners = owner.const_data_ptr<int64_t>();
  const std::vector<int64_t> shared(owners, owners + owner.numel());
  std::vector<int64_t> own(shared.size());
  std::iota(own.begin(), own.end(), 0);
  std::vector<std::vector<int64_t>> rows;
  for (const std::string& stream : shape.streams)
    rows.push_back(stream == "state" || stream == "task" ? shared : own);
  return values_of(config, packed_q.forward(select_inputs(shape, state, action, task, owner), rows));
}

at::Tensor Scorer::Model::v_of(const at::Tensor& state, const at::Tensor& task) const {
  const NetworkShape shape = v_shape(config, width);
  const auto inputs = select_inputs(shape, state, {}, task);
  if (!device.is_cpu()) return v.forward(inputs).select(0, 0).squeeze(1).cpu();
  std::vector<int64_t> own(static_cast<size_t>(state.size(0)));
  std::iota(own.begin(), own.end(), 0);
  return packed_v.forward(inputs, std::vector(inputs.size(), own)).select(0, 0).squeeze(1);
}

Scorer::Scorer(std::unique_ptr<const Model> model) : model_(std::move(model)) {}
Scorer::~Scorer() = default;

int64_t Scorer::width() const { return model_->width; }
int64_t Scorer::heads() const { return model_->config.heads; }
const std::string& Scorer::fingerprint() const { return model_->fingerprint; }

std::shared_ptr<Scorer> Scorer::load(const fs::path& path, const std::string& device) {
  const c10::NoGradGuard no_grad;
  const fs::path config_path = path / "config.json";
  BOQ_CHECK(fs::exists(config_path), ErrorCode::kFileNotFound, path.string(),
            ": expected a trained model (config.json is missing); train one, or name its folder");
  const Json json = read_json_file(config_path);
  const JsonView view(json, config_path.string());
  if (view.at("kind").as_string() != "iql" || view.at("version").as_int() != 1)
    view.reject("expected a model of kind iql, version 1");
  auto model = std::make_unique<Model>();
  model->config = resolve_config(view.at("config").raw(), {});
  model->width = view.at("width").as_int(1, 1 << 20);
  model->fingerprint = view.at("fingerprint").as_string();
  model->device = parse_device(device);
  model->q = Network(q_shape(model->config, model->width), model->config.heads, model->device, false);
  model->v = Network(v_shape(model->config, model->width), 1, model->device, false);

  const auto file = SafetensorsFile::open(path / "model.safetensors");
  std::vector<std::string> taken;
  load_network(file, "q.", true, model->q, taken);
  load_network(file, "v.", false, model->v, taken);
  if (model->device.is_cpu()) {
    model->packed_q = PackedNetwork(std::exchange(model->q, {}));
    model->packed_v = PackedNetwork(std::exchange(model->v, {}));
  }
  const double clip = model->config.standardise_clip;
  if (model->config.standardise) {
    model->standardisers = {load_standardiser(file, "state", model->width, clip, model->device),
                            load_standardiser(file, "action", model->width, clip, model->device),
                            load_standardiser(file, "task", model->width, clip, model->device)};
    BOQ_CHECK(!model->standardisers.state.is_identity() && !model->standardisers.action.is_identity() &&
                  !model->standardisers.task.is_identity(),
              ErrorCode::kWeightsMissing, file.path().string(),
              ": config.json says standardise, but norm.* is missing");
  }
  return std::shared_ptr<Scorer>(new Scorer(std::move(model)));
}

Scores Scorer::score(const ScoreBatch& batch) const {
  const c10::NoGradGuard no_grad;
  const Model& m = *model_;
  const auto check = [&](const at::Tensor& rows, const char* name, int64_t count) {
    BOQ_CHECK(
        rows.defined() && rows.dim() == 2 && rows.size(1) == m.width && (count < 0 || rows.size(0) == count),
        ErrorCode::kShapeMismatch, name, ": expected ",
        count < 0 ? std::string("some") : std::to_string(count), " rows of width ", m.width,
        ", the width of the model, got shape ", rows.sizes());
  };
  check(batch.states, "states", -1);
  const int64_t states = batch.states.size(0);
  check(batch.tasks, "tasks", states);
  check(batch.actions, "actions", -1);
  const int64_t actions = batch.actions.size(0);
  BOQ_CHECK(batch.owner.defined() && batch.owner.dim() == 1 && batch.owner.size(0) == actions,
            ErrorCode::kShapeMismatch, "owner: expected one number a candidate (", actions, ")");
  const at::Tensor owner = batch.owner.to(at::kLong);
  if (actions > 0)
    BOQ_CHECK(owner.min().item<int64_t>() >= 0 && owner.max().item<int64_t>() < states,
              ErrorCode::kInvalidArgument, "owner: expected numbers from 0 to ", states - 1);
  Scores scores{at::zeros({actions}, at::kFloat), at::zeros({actions}, at::kFloat),
                at::zeros({states}, at::kFloat)};
  if (states == 0) return scores;

  const at::Tensor state = m.standardisers.state.apply(batch.states.to(m.device, at::kFloat));
  const at::Tensor task = m.standardisers.task.apply(batch.tasks.to(m.device, at::kFloat));
  at::Tensor heads;
  const auto forward = [&](int64_t first, int64_t last) {
    const c10::NoGradGuard no_grad_here;  // a setting of each thread
    for (int64_t network = first; network < last; ++network) {
      if (network == 0 && actions > 0) {
        const at::Tensor action = m.standardisers.action.apply(batch.actions.to(m.device, at::kFloat));
        heads = m.q_of(state, action, task, owner.contiguous());
      } else if (network == 1) {
        scores.v = m.v_of(state, task);
      }
    }
  };
  // Of few states, a thread for each network; of many, all threads for one network and then the other.
  if (states < kManyStates && m.device.is_cpu())
    at::parallel_for(0, 2, 1, forward);
  else
    forward(0, 2);
  if (actions > 0) {
    scores.q = heads.mean(0).cpu();
    if (heads.size(0) > 1) scores.spread = heads.std(0, /*unbiased=*/false).cpu();
  }
  BOQ_CHECK(at::isfinite(scores.q).all().item<bool>() && at::isfinite(scores.v).all().item<bool>(),
            ErrorCode::kNotFinite, "expected finite values, got NaN or infinity; are the embeddings finite?");
  return scores;
}

}  // namespace boq::iql
