// The learner beside an independent PyTorch IQL: same parameters, same batches, same reports. The fixture
// comes from test/parity/iql_reference.py.
#include <ATen/ATen.h>

#include <cmath>

#include "doctest/doctest.h"
#include "native/core/safetensors.h"
#include "native/iql/iql.h"

namespace boq::iql {
namespace {

// The reference has one head; its names are ours without the head's number.
void fill(Network& network, const SafetensorsFile& file, const std::string& prefix) {
  for (auto& [name, view] : network.named_views(network.parameters()))
    view.copy_(file.tensor(prefix + name.substr(2)));
  network.parameters_changed();
}

TEST_CASE("IQL parity: fifty steps of the PyTorch reference, report by report") {
  const auto file =
      SafetensorsFile::open(std::string(BOQ_SOURCE_DIR) + "/test/fixtures/parity/iql/trace.safetensors");
  const Json settings = Json::parse(file.metadata().at("settings"));
  IqlConfig config;
  config.projection = 12;
  config.hidden = {20, 8};
  config.dropout = 0;
  config.precision = "float32";
  config.steps = settings["horizon"];
  config.gamma = settings["gamma"];
  config.tau = settings["tau"];
  config.learning_rate = settings["lr"];
  config.weight_decay = settings["weight_decay"];
  config.gradient_clip = settings["clip"];
  config.target_period = settings["period"];
  Iql learner(config, 6, at::kCPU);
  fill(learner.q(), file, "q.");
  fill(learner.v(), file, "v.");
  learner.target().parameters().copy_(learner.q().parameters());
  learner.target_changed();

  const at::Tensor rows = file.tensor("rows"), reports = file.tensor("reports");
  double worst_early = 0, worst = 0;
  for (int64_t step = 0; step < rows.size(0); ++step) {
    const auto pick = [&](const char* name) {
      return file.tensor(std::string("data.") + name).index_select(0, rows[step]);
    };
    Batch batch;
    batch.state = pick("state");
    batch.action = pick("action");
    batch.task = pick("task");
    batch.next_state = pick("next_state");
    batch.reward = pick("reward").unsqueeze(0);
    batch.discount = config.gamma * (1 - pick("done")).unsqueeze(0);
    const StepReport got = learner.step(batch);
    const double values[] = {got.loss_v, got.loss_q, got.v_mean, got.q_mean, got.v_norm, got.q_norm};
    for (int64_t i = 0; i < 6; ++i) {
      const double expected = reports[step][i].item<double>();
      // Means pass through zero; a relative error needs the scale of the values.
      const double error = std::abs(values[i] - expected) / std::max(0.1, std::abs(expected));
      worst = std::max(worst, error);
      if (step < 10) worst_early = std::max(worst_early, error);
    }
  }
  CHECK(worst_early < 1e-6);
  CHECK(worst < 1e-4);
  double difference = 0, size = 0;
  for (const auto& [name, view] : learner.q().named_views(learner.q().parameters())) {
    const at::Tensor expected = file.tensor("final.q." + name.substr(2));
    difference += (view - expected).square().sum().item<double>();
    size += expected.square().sum().item<double>();
  }
  CHECK(std::sqrt(difference / size) < 1e-4);
}

}  // namespace
}  // namespace boq::iql
