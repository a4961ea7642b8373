// Values of a trained model, as the agent asks for them.
#include "native/iql/scorer.h"

#include <ATen/ATen.h>

#include <cmath>

#include "doctest/doctest.h"
#include "native/core/safetensors.h"
#include "native/test/expect_error.h"
#include "native/test/iql_fixture.h"
#include "native/test/temporary_folder.h"

namespace boq::test {
namespace {

TEST_CASE("IQL scorer: values depend on the row alone, whatever else is in the batch") {
  const TemporaryFolder folder;
  const World world = random_world(40, 8, 12);
  write_world(folder / "data", world);
  train_quietly(folder / "data", folder / "model", run_config(30));
  const auto scorer = iql::Scorer::load(folder / "model", "cpu");
  CHECK(scorer->width() == 8);
  CHECK(scorer->heads() == 2);
  CHECK(scorer->fingerprint() == "test");

  const at::Tensor owner = at::arange(64, at::kInt).remainder(10);
  const at::Tensor actions = world.actions.index_select(0, at::arange(64).remainder(8));
  const auto all = scorer->score(
      {world.states.narrow(0, 0, 10), world.tasks.narrow(0, 0, 1).expand({10, 8}), actions, owner});
  CHECK(all.spread.min().item<double>() > 0);
  for (const int64_t i : {0, 9, 40, 63}) {
    const int64_t state = owner[i].item<int64_t>();
    const auto one = scorer->score({world.states.narrow(0, state, 1), world.tasks.narrow(0, 0, 1),
                                    actions.narrow(0, i, 1), at::zeros({1}, at::kInt)});
    CHECK(std::abs(one.q.item<double>() - all.q[i].item<double>()) < 1e-6);
    CHECK(std::abs(one.v.item<double>() - all.v[state].item<double>()) < 1e-6);
  }
  CHECK(all.q[0].item<double>() == doctest::Approx(all.q[40].item<double>()).epsilon(1e-6));

  const auto bad = [&](const at::Tensor& states, const at::Tensor& owners) {
    scorer->score({states, world.tasks.narrow(0, 0, 1), actions, owners});
  };
  expect_error(ErrorCode::kShapeMismatch, "width 8", [&] { bad(at::zeros({1, 9}), owner); });
  expect_error(ErrorCode::kInvalidArgument, "owner", [&] { bad(at::zeros({1, 8}), owner); });
  expect_error(ErrorCode::kNotFinite, "finite", [&] {
    bad(at::full({1, 8}, NAN), at::zeros({64}, at::kInt));
  });
  expect_error(ErrorCode::kFileNotFound, "config.json", [&] { iql::Scorer::load(folder / "none", "cpu"); });
}

TEST_CASE("IQL scorer: the match of action and task is their product, after standardisation") {
  const TemporaryFolder folder;
  const World world = random_world(40, 8, 12);
  write_world(folder / "data", world);
  Json config = run_config(30);
  config.update({{"useMatch", true}, {"heads", 1}});
  train_quietly(folder / "data", folder / "model", config);
  const auto file = SafetensorsFile::open(folder / "model" / "model.safetensors");
  const auto standardised = [&](const at::Tensor& rows, const std::string& stream) {
    return ((rows - file.tensor("norm." + stream + ".mean")) / file.tensor("norm." + stream + ".std"))
        .clamp(-6, 6);
  };
  const auto linear = [&](const at::Tensor& x, const std::string& name) {
    return at::linear(x, file.tensor("q.0." + name + ".weight"), file.tensor("q.0." + name + ".bias"));
  };

  const at::Tensor owner = at::tensor({1, 0, 1, 2, 2, 0}, at::kInt);
  const at::Tensor states = world.states.narrow(0, 0, 3), actions = world.actions.narrow(0, 0, 6),
                   tasks = at::randn({3, 8});
  const at::Tensor own_task = standardised(tasks, "task").index_select(0, owner),
                   action = standardised(actions, "action");
  at::Tensor h = at::cat(
      {linear(standardised(states, "state").index_select(0, owner), "state_proj"),
       linear(action, "action_proj"), linear(own_task, "task_proj"), linear(action * own_task, "match_proj")},
      1);
  int64_t layer = 0;
  for (; file.contains("q.0.hidden." + std::to_string(layer) + ".weight"); ++layer)
    h = at::relu(linear(h, "hidden." + std::to_string(layer)));
  REQUIRE(layer > 0);
  const auto scorer = iql::Scorer::load(folder / "model", "cpu");
  const at::Tensor q = scorer->score({states, tasks, actions, owner}).q;
  CHECK((q - linear(h, "out").squeeze(1)).abs().max().item<double>() < 1e-4);
  CHECK(!file.contains("v.match_proj.weight"));
}

}  // namespace
}  // namespace boq::test
