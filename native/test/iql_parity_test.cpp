// The learner beside an independent PyTorch IQL: same parameters, same batches, same reports. The fixture
// comes from test/parity/iql_reference.py.
#include <ATen/ATen.h>

#include <cmath>
#include <cstdlib>

#include "doctest/doctest.h"
#include "native/core/safetensors.h"
#include "native/iql/iql.h"
#include "native/iql/scorer.h"
#include "native/iql/statistics.h"
#include "native/test/iql_fixture.h"
#include "native/test/temporary_folder.h"

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

// Mean rank correlation of every row of `a` with every row of `b` [seeds, n]; with itself: of different rows.
double agreement(const at::Tensor& a, const at::Tensor& b) {
  const auto row = [](const at::Tensor& values, int64_t i) {
    const at::Tensor plain = values[i].contiguous();
    return std::vector<float>(plain.const_data_ptr<float>(), plain.const_data_ptr<float>() + plain.numel());
  };
  double sum = 0, count = 0;
  for (int64_t i = 0; i < a.size(0); ++i) {
    for (int64_t j = 0; j < b.size(0); ++j) {
      if (a.is_same(b) && i == j) continue;
      sum += rank_correlation(row(a, i), row(b, j));
      ++count;
    }
  }
  return sum / count;
}

TEST_CASE("IQL parity: trained Q agrees with PyTorch's as PyTorch's seeds agree with one another") {
  const auto file =
      SafetensorsFile::open(std::string(BOQ_SOURCE_DIR) + "/test/fixtures/parity/iql/agreement.safetensors");
  const Json settings = Json::parse(file.metadata().at("settings"));
  test::World world;
  world.states = file.tensor("states");
  world.actions = file.tensor("actions");
  world.tasks = file.tensor("tasks");
  const at::Tensor action = file.tensor("action"), episode = file.tensor("episode"),
                   task = file.tensor("episode_task"), reward = file.tensor("episode_reward");
  for (int64_t e = 0; e < task.size(0); ++e)
    world.episodes.push_back({{}, reward[e].item<float>(), -1, 0.9f, task[e].item<int32_t>()});
  for (int64_t t = 0; t < action.size(0); ++t)
    world.episodes[static_cast<size_t>(episode[t].item<int64_t>())].moves.push_back(
        {t, action[t].item<int64_t>()});
  const test::TemporaryFolder folder;
  test::write_world(folder / "data", world);

  const at::Tensor unseen = file.tensor("unseen.states"), unseen_task = file.tensor("unseen.task");
  const int64_t states = unseen.size(0), actions = world.actions.size(0);
  const ScoreBatch batch{unseen, world.tasks.index_select(0, unseen_task), world.actions.repeat({states, 1}),
                         at::arange(states).repeat_interleave(actions)};
  Json config = {{"steps", settings["steps"]},
                 {"batchSize", settings["batch"]},
                 {"gamma", settings["gamma"]},
                 {"tau", settings["tau"]},
                 {"learningRate", settings["lr"]},
                 {"weightDecay", settings["weight_decay"]},
                 {"gradientClip", settings["clip"]},
                 {"targetPeriod", settings["period"]},
                 {"hidden", settings["hidden"]},
                 {"projection", settings["projection"]},
                 {"dropout", 0},
                 {"standardise", false},
                 {"precision", "float32"},
                 {"validationFraction", 0}};
  std::vector<at::Tensor> values;
  const int seeds = std::getenv("BOQ_LONG_TESTS") != nullptr ? 8 : 2;
  for (int seed = 0; seed < seeds; ++seed) {
    config["seed"] = seed;
    test::train_quietly(folder / "data", folder / "model", config);
    values.push_back(Scorer::load(folder / "model", "cpu")->score(batch).q);
  }
  const at::Tensor ours = at::stack(values), reference = file.tensor("q");
  const double among_reference = agreement(reference, reference), with_reference = agreement(ours, reference);
  MESSAGE("rank correlation: among the reference's seeds ", among_reference, ", ours with them ",
          with_reference);
  CHECK(among_reference > 0.85);
  CHECK(with_reference > 0.99 * among_reference);
}

}  // namespace
}  // namespace boq::iql
