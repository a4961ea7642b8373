// Several models in one call: each must be the model that it would be alone.
#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include "doctest/doctest.h"
#include "native/iql/checkpoint.h"
#include "native/iql/trainer.h"
#include "native/test/expect_error.h"
#include "native/test/iql_fixture.h"
#include "native/test/temporary_folder.h"

namespace boq::test {
namespace {

namespace fs = std::filesystem;

Json sweep_config(int64_t steps) {
  Json config = run_config(steps);
  config["headShare"] = 0.8;
  return config;
}

iql::TrainRequest request_for(const TemporaryFolder& folder, const char* out, const Json& config) {
  at::set_num_threads(1);
  return {{folder / "data"}, folder / out, "cpu", config, false};
}

void check_equal(const fs::path& a, const fs::path& b) {
  for (const char* file : {"model.safetensors", "metrics.jsonl", "config.json", "offline.json"})
    CHECK_MESSAGE(read_bytes(a / file) == read_bytes(b / file), a.string(), " and ", b.string(),
                  " differ in ", file);
}

TEST_CASE("IQL sweep: models of one run are to the bit what they are alone") {
  const TemporaryFolder folder;
  write_world(folder / "data", random_world(40, 8, 1));
  auto request = request_for(folder, "many", sweep_config(30));
  request.seeds = 2;
  request.sweep = {{"tau", {0.6, 0.8}}, {"learningRate", {1e-3, 2e-3}}};
  int64_t last = 0;
  const auto summaries = iql::train_models(
      request,
      [&](const iql::TrainProgress& progress) {
        CHECK(progress.steps == 8 * 30);
        last = progress.step;
      },
      CancelFlag());
  CHECK(last == 8 * 30);
  REQUIRE(summaries.size() == 8);
  CHECK(summaries[0].name == "learningRate-0.001-tau-0.6-seed-0");
  CHECK(summaries[7].name == "learningRate-0.002-tau-0.8-seed-1");
  for (const auto& summary : summaries) {
    CHECK(summary.steps == 30);
    Json alone = sweep_config(30);
    const Json resolved = Json::parse(read_bytes(folder / "many" / summary.name / "config.json"))["config"];
    for (const char* key : {"tau", "learningRate", "seed"}) alone[key] = resolved[key];
    train_quietly(folder / "data", folder / "alone", alone);
    check_equal(folder / "many" / summary.name, folder / "alone");
  }
}

TEST_CASE("IQL sweep: models of other shapes, terms and controls follow one another") {
  const TemporaryFolder folder;
  write_world(folder / "data", random_world(40, 8, 2));
  for (const auto& [key, values] : std::map<std::string, std::vector<Json>>{
           {"hidden", {Json{16, 8}, Json{32}}},
           {"conservative", {0.1, 0.2}},
           {"shuffleRewards", {false, true}},
           {"qTarget", {"td", "monte-carlo"}},
       }) {
    auto request = request_for(folder, "many", sweep_config(12));
    request.sweep = {{key, values}};
    const auto summaries = iql::train_models(request, nullptr, CancelFlag());
    REQUIRE(summaries.size() == 2);
    for (size_t i = 0; i < 2; ++i) {
      Json alone = sweep_config(12);
      alone[key] = values[i];
      train_quietly(folder / "data", folder / "alone", alone);
      check_equal(folder / "many" / summaries[i].name, folder / "alone");
    }
  }
  CHECK(fs::exists(folder / "many" / "hidden-16x8" / "config.json"));
}

TEST_CASE("IQL sweep: what was stopped goes on, what was finished stays") {
  const TemporaryFolder folder;
  write_world(folder / "data", random_world(40, 8, 3));
  auto request = request_for(folder, "whole", sweep_config(40));
  request.seeds = 3;
  iql::train_models(request, nullptr, CancelFlag());
  request.out = folder / "parts";
  CancelFlag cancel;
  for (const auto& summary : iql::train_models(
           request, [&](const iql::TrainProgress&) { cancel.cancel(); }, cancel))
    CHECK(summary.stopped);
  // One model goes on alone first, so that the others stand at an earlier step.
  Json alone = sweep_config(40);
  alone["seed"] = 1;
  train_quietly(folder / "data", folder / "parts" / "seed-1", alone, /*resume=*/true);
  const auto finished = fs::last_write_time(folder / "parts" / "seed-1" / "model.safetensors");
  request.resume = true;
  for (const auto& summary : iql::train_models(request, nullptr, CancelFlag())) CHECK(summary.steps == 40);
  CHECK(fs::last_write_time(folder / "parts" / "seed-1" / "model.safetensors") == finished);
  for (const char* name : {"seed-0", "seed-1", "seed-2"})
    check_equal(folder / "whole" / name, folder / "parts" / name);
}

TEST_CASE("IQL sweep: mistakes are named") {
  const TemporaryFolder folder;
  write_world(folder / "data", random_world(20, 8, 4));
  auto request = request_for(folder, "model", sweep_config(5));
  const auto refuse = [&](const char* part) {
    expect_error(ErrorCode::kConfigInvalid, part, [&] { iql::train_models(request, nullptr, CancelFlag()); });
  };
  request.sweep = {{"taus", {0.5}}};
  refuse("did you mean 'tau'");
  request.sweep = {{"tau", {}}};
  refuse("no values");
  request.sweep = {{"tau", {0.5, 0.5}}};
  refuse("tau-0.5");
  request.sweep = {{"seed", {1, 2}}};
  request.seeds = 2;
  refuse("exclude");
  request.sweep.clear();
  request.seeds = 0;
  refuse("seeds");
}

}  // namespace
}  // namespace boq::test
