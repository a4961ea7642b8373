// Embedded runs as data: read as one set, split, standardised, shuffled.
#include <ATen/ATen.h>

#include "doctest/doctest.h"
#include "native/iql/split.h"
#include "native/iql/transitions.h"
#include "native/test/iql_fixture.h"
#include "native/test/temporary_folder.h"

namespace boq::test {
namespace {

TEST_CASE("IQL data: several runs are one set, whatever their shards") {
  const TemporaryFolder folder;
  World first = random_world(20, 8, 9), second = random_world(30, 8, 10);
  second.rows_per_shard = 7;
  write_world(folder / "first", first);
  write_world(folder / "second", second);
  const auto data = iql::Transitions::load({folder / "first", folder / "second"});
  CHECK(data.size() == 150);
  CHECK(data.episodes() == 50);
  CHECK(data.task_names.size() == 2);
  const std::vector<int64_t> rows = {0, 59, 60, 66, 67, 149, -1};
  const at::Tensor got = data.states.gather(rows, {}, at::kFloat);
  CHECK(at::equal(got[1], first.states[59]));
  CHECK(at::equal(got[2], second.states[0]));
  CHECK(at::equal(got[4], second.states[7]));
  CHECK(at::equal(got[5], second.states[89]));
  CHECK(got[6].abs().sum().item<double>() == 0);

  const auto split = iql::split_of(data, 0.2);
  const auto norm = iql::standardisers_for(data, split.training, 6);
  std::vector<int64_t> training_rows;
  for (const int64_t t : split.training) training_rows.push_back(data.state[static_cast<size_t>(t)]);
  const at::Tensor standard = data.states.gather(training_rows, norm.state, at::kFloat);
  CHECK(standard.mean(0).abs().max().item<double>() < 1e-5);
  CHECK((standard.std(0, false) - 1).abs().max().item<double>() < 1e-4);
  CHECK(at::allclose(standard, norm.state.apply(data.states.gather(training_rows, {}, at::kFloat))));
}

TEST_CASE("IQL data: the shuffled control keeps the number of successes and breaks the link") {
  const TemporaryFolder folder;
  write_world(folder / "data", random_world(200, 8, 11));
  auto data = iql::Transitions::load({folder / "data"});
  const auto before = data.episode_success;
  iql::shuffle_outcomes(data, 0.2, 1);
  int64_t successes_before = 0, successes_after = 0, moved = 0;
  for (size_t e = 0; e < before.size(); ++e) {
    successes_before += before[e];
    successes_after += data.episode_success[e];
    moved += before[e] != data.episode_success[e];
    if (data.episode_split[e] < 0.2) CHECK(before[e] == data.episode_success[e]);
    const auto last = static_cast<size_t>(data.episode_first[e] + data.episode_steps[e] - 1);
    CHECK(data.reward[last] == static_cast<float>(data.episode_success[e]));
  }
  CHECK(successes_before == successes_after);
  CHECK(moved > 40);
}

}  // namespace
}  // namespace boq::test
