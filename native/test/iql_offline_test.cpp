// Offline measures against values worked out by hand.
#include "native/iql/offline.h"

#include <algorithm>
#include <cmath>
#include <fstream>

#include "doctest/doctest.h"
#include "native/iql/statistics.h"
#include "native/test/iql_fixture.h"
#include "native/test/temporary_folder.h"

namespace boq::iql {
namespace {

using Scores = std::vector<float>;
using Labels = std::vector<uint8_t>;

// What readers of an isotonic map make of its corners.
double value_at(const std::vector<std::pair<double, double>>& corners, double score) {
  const auto after = std::upper_bound(corners.begin(), corners.end(), score,
                                      [](double value, const auto& corner) { return value < corner.first; });
  if (after == corners.begin()) return corners.front().second;
  if (after == corners.end()) return corners.back().second;
  const auto [low, low_value] = *(after - 1);
  const auto [high, high_value] = *after;
  return low_value + (high_value - low_value) * (score - low) / (high - low);
}

TEST_CASE("offline: the area under the curve counts ordered pairs, ties half") {
  CHECK(area_under_curve(Scores{1, 2, 3, 4}, Labels{0, 0, 1, 1}) == 1);
  CHECK(area_under_curve(Scores{4, 3, 2, 1}, Labels{0, 0, 1, 1}) == 0);
  CHECK(area_under_curve(Scores{1, 3, 2, 4}, Labels{0, 0, 1, 1}) == doctest::Approx(0.75));
  CHECK(area_under_curve(Scores{5, 5, 5, 5}, Labels{0, 1, 0, 1}) == 0.5);
  CHECK(std::isnan(area_under_curve(Scores{1, 2}, Labels{1, 1})));
}

TEST_CASE("offline: rank correlation is blind to scale and honest about ties") {
  CHECK(rank_correlation(Scores{1, 2, 3}, Scores{10, 100, 1000}) == doctest::Approx(1));
  CHECK(rank_correlation(Scores{1, 2, 3}, Scores{3, 2, 1}) == doctest::Approx(-1));
  CHECK(rank_correlation(Scores{1, 2, 2, 3}, Scores{1, 2, 3, 4}) ==
        doctest::Approx(4.5 / std::sqrt(4.5 * 5)));
  CHECK(std::isnan(rank_correlation(Scores{1, 1}, Scores{1, 2})));
}

TEST_CASE("offline: calibration error") {
  CHECK(calibration_error(Scores{0.5f, 0.5f, 0.5f, 0.5f}, Labels{0, 1, 0, 1}, 1) == doctest::Approx(0));
  CHECK(calibration_error(Scores{0.1f, 0.1f, 0.9f, 0.9f}, Labels{1, 1, 0, 0}, 2) == doctest::Approx(0.9));
}

TEST_CASE("offline: the isotonic map is monotonic, pools what is out of order, and interpolates") {
  const auto map = isotonic_fit(Scores{0.1f, 0.2f, 0.3f, 0.4f, 0.5f}, Labels{0, 1, 0, 1, 1});
  CHECK(value_at(map, 0.0) == 0);
  CHECK(value_at(map, 0.2) == doctest::Approx(0.5));
  CHECK(value_at(map, 0.25) == doctest::Approx(0.5));
  CHECK(value_at(map, 0.35) == doctest::Approx(0.75));
  CHECK(value_at(map, 9) == 1);
  for (size_t i = 1; i < map.size(); ++i) CHECK(map[i].second >= map[i - 1].second);
}

TEST_CASE("offline: a report of a trained model on episodes it never saw") {
  const test::TemporaryFolder folder;
  test::World world = test::random_world(400, 8, 21);
  test::write_world(folder / "data", world);
  Json config = test::small_config(600);
  config.update({{"validationFraction", 0.3}, {"heads", 3}, {"qTarget", "outcome"}, {"regressor", true}});
  test::train_quietly(folder / "data", folder / "model", config);
  const Json report = Json::parse(std::ifstream(folder / "model" / "offline.json"));
  CHECK(report["transitions"] == 360);
  CHECK(report["byStep"].size() == 3);
  // The last action decides the outcome in this world: Q sees it, V and the step number cannot.
  CHECK(report["byStep"][2]["q"].get<double>() > 0.75);
  CHECK(report["byStep"][2]["v"].get<double>() < 0.7);
  CHECK(report["byStep"][0]["q"].get<double>() < 0.7);
  CHECK(report["stepNumber"]["auc"].get<double>() == doctest::Approx(0.5));
  // The regressor sees the same features, so it must see that too; the tasks differ in nothing.
  CHECK(report["byStep"][2]["regressor"].get<double>() > 0.75);
  CHECK(report["regressor"]["picks"]["decisions"] == 360);
  CHECK(report["regressor"]["auc"].get<double>() > report["task"]["auc"].get<double>());
  CHECK(report["picks"]["decisions"] == 360);
  CHECK(report["picks"]["byIndex"].size() == 3);
  const Json map = Json::parse(std::ifstream(folder / "model" / "config.json"))["calibration"];
  CHECK(map["kind"] == "isotonic");
  CHECK(map["q"].size() == map["success"].size());
}

}  // namespace
}  // namespace boq::iql
