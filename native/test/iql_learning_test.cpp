// Worlds whose answers are known in closed form: what IQL learns must be what the algebra says.
#include <ATen/ATen.h>

#include <cmath>

#include "doctest/doctest.h"
#include "native/test/iql_fixture.h"
#include "native/test/temporary_folder.h"

namespace boq::test {
namespace {

std::shared_ptr<iql::Scorer> learn(const World& world, const Json& changes, int64_t steps = 1200) {
  const TemporaryFolder folder;
  write_world(folder / "data", world);
  Json config = small_config(steps);
  config.update(changes);
  train_quietly(folder / "data", folder / "model", config);
  return iql::Scorer::load(folder / "model", "cpu");
}

World tabular(int64_t states, int64_t actions) {
  const int64_t width = states + actions + 1;
  World world;
  world.states = one_hot_rows(states, width);
  world.actions = one_hot_rows(actions, width, states);
  world.tasks = one_hot_rows(1, width, states + actions);
  return world;
}

// The tau-expectile of weighted values, by its definition: sum of w |tau - 1(q < v)| (q - v) = 0.
double expectile(const std::vector<std::pair<double, double>>& values, double tau) {
  double low = 0, high = 1;
  for (int i = 0; i < 60; ++i) {
    const double v = (low + high) / 2;
    double slope = 0;
    for (const auto& [q, weight] : values) slope += weight * (q < v ? 1 - tau : tau) * (q - v);
    (slope > 0 ? low : high) = v;
  }
  return (low + high) / 2;
}

TEST_CASE("IQL: V is the expectile of Q over the actions taken") {
  World world = tabular(1, 3);
  const std::vector<std::pair<double, double>> returns = {{1.0, 0.2}, {0.3, 0.3}, {0.0, 0.5}};
  for (int i = 0; i < 20; ++i) {
    const int64_t action = i < 4 ? 0 : i < 10 ? 1 : 2;
    world.episodes.push_back({{{0, action}}, static_cast<float>(returns[static_cast<size_t>(action)].first)});
  }
  for (const double tau : {0.5, 0.7, 0.9}) {
    const auto scorer = learn(world, {{"tau", tau}});
    CHECK(values_at(*scorer, world, 0, 0).v == doctest::Approx(expectile(returns, tau)).epsilon(0.03));
    CHECK(values_at(*scorer, world, 0, 1).q == doctest::Approx(0.3).epsilon(0.05));
  }
}

TEST_CASE("IQL: on a chain, Q is the discounted distance to the reward, and 0 off the path") {
  World world = tabular(4, 2);
  world.episodes.push_back({{{0, 0}, {1, 0}, {2, 0}, {3, 0}}, 1});
  for (int64_t state = 0; state < 4; ++state) world.episodes.push_back({{{state, 1}}, 0});
  const auto scorer = learn(world, {{"gamma", 0.9}, {"tau", 0.9}}, 2000);
  // V looks past the bad action by its expectile only, so the path's values lie between SARSA's and the
  // optimum.
  double v_next = 0;
  for (int64_t state = 3; state >= 0; --state) {
    const Values good = values_at(*scorer, world, state, 0);
    const double expected = state == 3 ? 1 : 0.9 * v_next;
    CHECK(good.q == doctest::Approx(expected).epsilon(0.05));
    CHECK(std::abs(values_at(*scorer, world, state, 1).q) < 0.05);
    v_next = expectile({{expected, 1}, {0, 1}}, 0.9);
    CHECK(good.v == doctest::Approx(v_next).epsilon(0.06));
  }
}

TEST_CASE("IQL: a high expectile stitches two half-good trajectories, the mean does not") {
  // From 0: action 0 leads to state 1, where action 2 fails and action 3 (seen from elsewhere) succeeds;
  // action 1 ends at once and pays 0.7.
  World world = tabular(3, 5);
  for (int i = 0; i < 4; ++i) {
    world.episodes.push_back({{{0, 0}, {1, 2}}, 0});
    world.episodes.push_back({{{2, 4}, {1, 3}}, 1});
    world.episodes.push_back({{{0, 1}}, 0.7f});
  }
  const auto stitched = learn(world, {{"tau", 0.9}});
  CHECK(values_at(*stitched, world, 0, 0).q > values_at(*stitched, world, 0, 1).q + 0.1);
  const auto averaged = learn(world, {{"tau", 0.5}});
  CHECK(values_at(*averaged, world, 0, 0).q < values_at(*averaged, world, 0, 1).q - 0.1);
}

TEST_CASE("IQL: luck is averaged, not chased") {
  // Action 0 wins half the time, action 1 always pays 0.6.
  World world = tabular(1, 2);
  for (int i = 0; i < 8; ++i) {
    world.episodes.push_back({{{0, 0}}, i % 2 == 0 ? 1.0f : 0.0f});
    world.episodes.push_back({{{0, 1}}, 0.6f});
  }
  const auto scorer = learn(world, {{"tau", 0.95}});
  const Values lucky = values_at(*scorer, world, 0, 0), steady = values_at(*scorer, world, 0, 1);
  CHECK(lucky.q == doctest::Approx(0.5).epsilon(0.08));
  CHECK(steady.q > lucky.q);
  CHECK(lucky.v < 0.65);
}

TEST_CASE("IQL: a limit is a failure, or the end of the record") {
  World world = tabular(1, 2);
  for (int i = 0; i < 4; ++i) {
    world.episodes.push_back({{{0, 0}}, 1});
    world.episodes.push_back({{{0, 1}}, 0, /*after_limit=*/0});
  }
  const auto strict = learn(world, Json::object());
  CHECK(std::abs(values_at(*strict, world, 0, 1).q) < 0.05);
  // Bootstrapped: Q(wait) = gamma V and V = (1 + Q(wait)) / 2.
  const auto open = learn(world, {{"bootstrapTimeouts", true}, {"gamma", 0.8}});
  const double v = 1 / (2 - 0.8);
  CHECK(values_at(*open, world, 0, 1).q == doctest::Approx(0.8 * v).epsilon(0.06));
}

TEST_CASE("IQL: the other targets are what they say") {
  // Two steps; the second action of state 1 decides. Action 0 is followed by success three times in four.
  World world = tabular(2, 3);
  for (int i = 0; i < 4; ++i) world.episodes.push_back({{{0, 0}, {1, i == 3 ? 2 : 1}}, i == 3 ? 0.0f : 1.0f});
  const double gamma = 0.9;
  const auto q = [&](const char* target, double tau) {
    return values_at(*learn(world, {{"qTarget", target}, {"gamma", gamma}, {"tau", tau}}), world, 0, 0).q;
  };
  CHECK(q("monte-carlo", 0.9) == doctest::Approx(gamma * 0.75).epsilon(0.05));
  CHECK(q("outcome", 0.9) == doctest::Approx(0.75).epsilon(0.05));
  CHECK(q("sarsa", 0.9) == doctest::Approx(gamma * 0.75).epsilon(0.06));
  CHECK(q("td", 0.9) == doctest::Approx(gamma * expectile({{1, 3}, {0, 1}}, 0.9)).epsilon(0.06));
}

TEST_CASE("IQL: every value loss finds the mean outcome; heads agree on it") {
  World world = tabular(1, 2);
  for (int i = 0; i < 10; ++i) {
    world.episodes.push_back({{{0, 0}}, i < 7 ? 1.0f : 0.0f});
    world.episodes.push_back({{{0, 1}}, i < 2 ? 1.0f : 0.0f});
  }
  for (const char* loss : {"mse", "bce", "hl-gauss"}) {
    const auto scorer =
        learn(world, {{"valueLoss", loss}, {"heads", 2}, {"headShare", 0.9}, {"headAggregate", "mean"}});
    CHECK(scorer->heads() == 2);
    CHECK(values_at(*scorer, world, 0, 0).q == doctest::Approx(0.7).epsilon(0.2));
    CHECK(values_at(*scorer, world, 0, 1).q < 0.4);
  }
}

TEST_CASE(
    "IQL: the conservative term lowers what was offered and never taken; ranking parts what was tried") {
  World world = tabular(1, 3);
  for (int i = 0; i < 8; ++i) {
    world.episodes.push_back({{{0, 0, {0, 2}}}, 1});
    world.episodes.push_back({{{0, 1, {1, 2}}}, 0.8f});
  }
  const auto gap = [&](const iql::Scorer& scorer, int64_t a, int64_t b) {
    return values_at(scorer, world, 0, a).q - values_at(scorer, world, 0, b).q;
  };
  const auto plain = learn(world, Json::object()), careful = learn(world, {{"conservative", 0.3}});
  CHECK(gap(*careful, 1, 2) > gap(*plain, 1, 2) + 0.1);
  const auto ranked = learn(world, {{"ranking", 0.5}});
  CHECK(gap(*ranked, 0, 1) > gap(*plain, 0, 1) + 0.1);
}

}  // namespace
}  // namespace boq::test
