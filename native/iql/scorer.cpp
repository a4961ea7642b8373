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

std::vector<int64_t> numbers_to(int64_t count) {
  std::vector<int64_t> numbers(static_cast<size_t>(count));
  std::iota(numbers.begin(), numbers.end(), 0);
  return numbers;
}

/// For every stream, the row of each candidate: its state's, or its own.
std::vector<std::vector<int64_t>> rows_of(const NetworkShape& shape, const at::Tensor& owner) {
  const int64_t* owners = owner.const_data_ptr<int64_t>();
  const std::vector<int64_t> shared(owners, owners + owner.numel()), own = numbers_to(owner.numel());
  std::vector<std::vector<int64_t>> rows;
  for (const std::string& stream : shape.streams)
    rows.push_back(stream == "state" || stream == "task" ? shared : own);
  return rows;
}

/// What one batch is worth.
struct Values {
  at::Tensor q;  ///< [K, C]; undefined without candidates
  at::Tensor v;  ///< [S]
};

}  // namespace

struct Scorer::Model {
  IqlConfig config;
  int64_t width = 0;
  std::string fingerprint;
  at::Device device = at::kCPU;
  Network q, v;                      // elsewhere than on the CPU
  PackedNetwork packed_q, packed_v;  // on the CPU
  Standardisers standardisers;

  /// Of float32 rows on the device, standardised; state and task have a row for every state, action and owner
  /// one for every candidate.
  Values values_of_rows(const at::Tensor& state, const at::Tensor& action, const at::Tensor& task,
                        const at::Tensor& owner) const;

 private:
  Values packed_values(const at::Tensor& state, const at::Tensor& action, const at::Tensor& task,
                       const at::Tensor& owner) const;
};

Values Scorer::Model::values_of_rows(const at::Tensor& state, const at::Tensor& action,
                                     const at::Tensor& task, const at::Tensor& owner) const {
  if (device.is_cpu()) return packed_values(state, action, task, owner);
  Values values;
  values.v = v.forward(select_inputs(v.shape(), state, {}, task)).select(0, 0).squeeze(1);
  if (action.size(0) == 0) return values;
  const at::Tensor index = owner.to(device);
  values.q = values_of(config, q.forward(select_inputs(q.shape(), state.index_select(0, index), action,
                                                       task.index_select(0, index))));
  return values;
}

Values Scorer::Model::packed_values(const at::Tensor& state, const at::Tensor& action, const at::Tensor& task,
                                    const at::Tensor& owner) const {
  const NetworkShape of_q = q_shape(config, width), of_v = v_shape(config, width);
  const bool has_candidates = action.size(0) > 0;
  const auto q_inputs = select_inputs(of_q, state, action, task, owner);
  const auto v_inputs = select_inputs(of_v, state, {}, task);
  std::vector<PackedProduct> products;
  PackedPass q_pass;
  if (has_candidates) q_pass = packed_q.begin(q_inputs, products);
  const PackedPass v_pass = packed_v.begin(v_inputs, products);
  multiply(products);

  Values values;
  const auto finish = [&](int64_t first, int64_t last) {
    const c10::NoGradGuard no_grad;  // a setting of each thread
    if (first == 0 && has_candidates)
      values.q = values_of(config, packed_q.finish(q_pass, rows_of(of_q, owner)));
    if (last == 2)
      values.v = packed_v.finish(v_pass, std::vector(v_inputs.size(), numbers_to(state.size(0))))
                     .select(0, 0)
                     .squeeze(1);
  };
  // Of few states, a thread for each network; of many, all threads for one network and then the other.
  if (state.size(0) < kManyStates)
    at::parallel_for(0, 2, 1, finish);
  else
    finish(0, 2);
  return values;
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
  const at::Tensor action = m.standardisers.action.apply(batch.actions.to(m.device, at::kFloat));
  const Values values = m.values_of_rows(state, action, task, owner.contiguous());
  scores.v = values.v.cpu();
  if (actions > 0) {
    scores.q = values.q.mean(0).cpu();
    if (values.q.size(0) > 1) scores.spread = values.q.std(0, /*unbiased=*/false).cpu();
  }
  BOQ_CHECK(at::isfinite(scores.q).all().item<bool>() && at::isfinite(scores.v).all().item<bool>(),
            ErrorCode::kNotFinite, "expected finite values, got NaN or infinity; are the embeddings finite?");
  return scores;
}

}  // namespace boq::iql
