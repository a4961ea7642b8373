// Values of a trained model, as the agent asks for them.
#include "native/iql/scorer.h"

#include <ATen/ATen.h>

#include <cmath>

#include "doctest/doctest.h"
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

}  // namespace
}  // namespace boq::test
