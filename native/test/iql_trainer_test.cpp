// A run as a whole: what it writes, that it repeats itself, what it refuses.
#include "native/iql/trainer.h"

#include <ATen/ATen.h>

#include <cmath>
#include <sstream>

#include "doctest/doctest.h"
#include "native/core/safetensors.h"
#include "native/iql/checkpoint.h"
#include "native/test/expect_error.h"
#include "native/test/iql_fixture.h"
#include "native/test/temporary_folder.h"

namespace boq::test {
namespace {

namespace fs = std::filesystem;

TEST_CASE("IQL training: leaves a model, its settings and its history") {
  const TemporaryFolder folder;
  const World world = random_world(60, 8, 1);
  write_world(folder / "data", world);
  int reports = 0;
  iql::TrainRequest request{{folder / "data"}, folder / "model", "cpu", run_config(40), false};
  const auto summary = iql::train(
      request,
      [&](const iql::TrainProgress& progress) {
        ++reports;
        CHECK(progress.steps == 40);
        CHECK(progress.metrics.count("loss/q") == 1);
      },
      CancelFlag());
  CHECK(reports >= 1);
  CHECK(summary.steps == 40);
  CHECK_FALSE(summary.stopped);
  CHECK(summary.metrics.count("validation/q_auc") == 1);
  const Json config = Json::parse(read_bytes(folder / "model" / "config.json"));
  CHECK(config["fingerprint"] == "test");
  CHECK(config["steps"] == 40);
  CHECK(config["config"]["targetPeriod"] == 20);
  CHECK(config["parameters"]["q"] == summary.q_parameters);
  CHECK(config["split"]["validationEpisodes"] == 12);
  std::istringstream lines(read_bytes(folder / "model" / "metrics.jsonl"));
  int64_t last = 0;
  for (std::string line; std::getline(lines, line);) {
    const Json entry = Json::parse(line);
    CHECK(entry["step"].get<int64_t>() == last + 1);
    last = entry["step"];
    for (const char* name : {"loss/v", "loss/q", "value/v_mean", "value/q_mean", "value/adv_mean",
                             "grad/v_norm", "grad/q_norm", "lr"})
      CHECK(entry.contains(name));
  }
  CHECK(last == 40);
  const auto model = SafetensorsFile::open(folder / "model" / "model.safetensors");
  for (const char* name : {"q.0.state_proj.weight", "q.1.hidden.1.bias", "v.task_proj.weight", "v.out.bias",
                           "target.1.action_proj.bias", "norm.action.mean"})
    CHECK(model.contains(name));
  CHECK_FALSE(model.contains("v.action_proj.weight"));
  CHECK_FALSE(fs::exists(folder / "model" / "checkpoint"));
}

TEST_CASE("IQL training: the same seed gives the same bytes, another seed others") {
  const TemporaryFolder folder;
  write_world(folder / "data", random_world(40, 8, 2));
  Json config = run_config(25);
  train_quietly(folder / "data", folder / "a", config);
  train_quietly(folder / "data", folder / "b", config);
  check_same_run(folder / "a", folder / "b");
  config["seed"] = 1;
  train_quietly(folder / "data", folder / "c", config);
  CHECK(read_bytes(folder / "a" / "model.safetensors") != read_bytes(folder / "c" / "model.safetensors"));
}

TEST_CASE("IQL training: starts from another model's weights, of the same networks and embeddings") {
  const TemporaryFolder folder;
  World world = random_world(40, 8, 2);
  write_world(folder / "data", world);
  train_quietly(folder / "data", folder / "first", run_config(25));
  const auto started = [&](const char* out, Json config, const char* data = "data") {
    config["learningRate"] = 1e-12;
    config["seed"] = 5;
    iql::TrainRequest request{{folder / data}, folder / out, "cpu", config, false};
    request.start_from = folder / "first";
    iql::train(request, nullptr, CancelFlag());
  };
  started("second", run_config(1));
  const auto first = SafetensorsFile::open(folder / "first" / "model.safetensors"),
             second = SafetensorsFile::open(folder / "second" / "model.safetensors");
  for (const char* name : {"q.0.state_proj.weight", "q.1.out.bias", "v.hidden.0.weight"}) {
    INFO(name);
    CHECK(at::allclose(first.tensor(name), second.tensor(name), 0, 1e-6));
  }
  const Json config = Json::parse(read_bytes(folder / "second" / "config.json"));
  CHECK(config["startedFrom"] == (folder / "first").string());

  Json wider = run_config(1);
  wider["projection"] = 24;
  expect_error(ErrorCode::kShapeMismatch, "the same networks", [&] { started("other", wider); });
  world.fingerprint = "another";
  write_world(folder / "foreign", world);
  expect_error(ErrorCode::kFingerprintMismatch, "another",
               [&] { started("other", run_config(1), "foreign"); });
}

TEST_CASE("IQL training: data that cannot be trained on is named") {
  const TemporaryFolder folder;
  World world = random_world(30, 8, 6);
  write_world(folder / "good", world);
  const Json config = run_config(5);
  Json strict = config;
  strict["allowSingleOutcome"] = false;
  const auto train_on = [&](const char* name, const Json& with) {
    train_quietly(folder / name, folder / "model", with);
  };

  World failures = world;
  for (auto& episode : failures.episodes) episode.reward = 0;
  write_world(folder / "failures", failures);
  expect_error(ErrorCode::kDataInvalid, "none of the", [&] { train_on("failures", strict); });
  CHECK_NOTHROW(train_on("failures", config));
  for (auto& episode : failures.episodes) episode.reward = 1;
  write_world(folder / "successes", failures);
  expect_error(ErrorCode::kDataInvalid, "all of the", [&] { train_on("successes", strict); });

  World empty = world;
  empty.episodes.clear();
  write_world(folder / "empty", empty);
  expect_error(ErrorCode::kDataEmpty, "collect", [&] { train_on("empty", config); });
  expect_error(ErrorCode::kFileNotFound, "manifest.json", [&] { train_on("nothing", config); });

  World other = world;
  other.fingerprint = "another";
  write_world(folder / "other", other);
  iql::TrainRequest request{{folder / "good", folder / "other"}, folder / "model", "cpu", config, false};
  expect_error(ErrorCode::kFingerprintMismatch, "another",
               [&] { iql::train(request, nullptr, CancelFlag()); });
  write_world(folder / "wide", random_world(30, 9, 6));
  request.data[1] = folder / "wide";
  expect_error(ErrorCode::kShapeMismatch, "width 8", [&] { iql::train(request, nullptr, CancelFlag()); });

  World beyond = world;
  beyond.episodes[0].moves[0].action = 99;
  beyond.episodes[0].moves[0].candidates = {99};
  write_world(folder / "beyond", beyond);
  expect_error(ErrorCode::kDataInvalid, "action", [&] { train_on("beyond", config); });
}

TEST_CASE("IQL training: values that are not finite stop the run, the last good checkpoint stays") {
  const TemporaryFolder folder;
  World world = random_world(40, 8, 7);
  write_world(folder / "good", world);
  world.states[17][3] = INFINITY;
  write_world(folder / "bad", world);
  Json config = run_config(200);
  config["standardise"] = false;
  config["checkpointEvery"] = 1;
  expect_error(ErrorCode::kNotFinite, "checkpoint",
               [&] { train_quietly(folder / "bad", folder / "model", config); });
  const fs::path path = iql::checkpoint_path(folder / "model");
  if (fs::exists(path)) CHECK_NOTHROW(train_quietly(folder / "good", folder / "model", config, true));
  config["standardise"] = true;
  expect_error(ErrorCode::kNotFinite, "dimension 3",
               [&] { train_quietly(folder / "bad", folder / "model", config); });
}

TEST_CASE("IQL training: a folder that cannot be written is named") {
  const TemporaryFolder folder;
  write_world(folder / "data", random_world(20, 8, 8));
  folder.write("file", "not a folder");
  expect_error(ErrorCode::kFileWrite, "file",
               [&] { train_quietly(folder / "data", folder / "file", run_config(5)); });
  if (fs::exists("/dev/full")) {
    fs::create_directories(folder / "full");
    fs::create_symlink("/dev/full", folder / "full" / "metrics.jsonl.part");
    expect_error(ErrorCode::kFileWrite, "metrics.jsonl",
                 [&] { train_quietly(folder / "data", folder / "full", run_config(5)); });
  }
}

}  // namespace
}  // namespace boq::test
