// Outcomes judged again, and what is no label.
#include "native/iql/labels.h"

#include <fstream>
#include <functional>

#include "doctest/doctest.h"
#include "native/iql/checkpoint.h"
#include "native/iql/trainer.h"
#include "native/test/expect_error.h"
#include "native/test/iql_fixture.h"
#include "native/test/temporary_folder.h"

namespace boq::test {
namespace {

namespace fs = std::filesystem;

Json label(const World& world, size_t episode, bool success) {
  return {{"key", episode_key(world, episode)}, {"success", success}};
}

TEST_CASE("IQL labels: the named episodes get their new outcome, the others keep theirs") {
  const TemporaryFolder folder;
  World first = random_world(20, 8, 1), second = random_world(20, 8, 2);
  write_world(folder / "first", first);
  // The same episodes under another policy are other episodes.
  second.fingerprint = "other";
  write_world(folder / "second", second);
  const std::vector<fs::path> folders = {folder / "first", folder / "second"};
  auto data = iql::Transitions::load({folder / "first"});
  const auto before = data.episode_success;
  std::string text;
  for (const size_t e : {3, 7, 11}) text += label(first, e, before[e] == 0).dump() + "\n";
  Json kept = label(first, 12, before[12] != 0);
  kept["judge"] = "a person";
  kept["note"] = "looked twice";
  const auto labels = folder.write("labels.jsonl", text + "\n" + kept.dump());
  const auto result = iql::apply_labels(data, {folders[0]}, labels);
  CHECK(result.episodes == 4);
  CHECK(result.changed == 3);
  for (size_t e = 0; e < before.size(); ++e) {
    const bool flipped = e == 3 || e == 7 || e == 11;
    CHECK((data.episode_success[e] != before[e]) == flipped);
    for (int64_t i = 0; i < data.episode_steps[e]; ++i) {
      const bool last = i + 1 == data.episode_steps[e];
      CHECK(data.reward[static_cast<size_t>(data.episode_first[e] + i)] ==
            (last && data.episode_success[e] ? 1.0f : 0.0f));
    }
  }
}

TEST_CASE("IQL labels: training on them is training on data that was recorded so") {
  const TemporaryFolder folder;
  World world = random_world(40, 8, 3), judged = world;
  std::string text;
  for (size_t e = 0; e < 40; e += 3) {
    judged.episodes[e].reward = 1 - world.episodes[e].reward;
    text += label(world, e, judged.episodes[e].reward > 0).dump() + "\n";
  }
  write_world(folder / "data", world);
  write_world(folder / "judged", judged);
  const auto bytes = [&](const char* name) { return read_bytes(folder / name / "model.safetensors"); };
  Json config = small_config(40);
  config["keepCheckpoint"] = true;
  train_quietly(folder / "judged", folder / "expected", config);
  train_quietly(folder / "data", folder / "plain", config);
  iql::TrainRequest request{{folder / "data"}, folder / "relabelled", "cpu", config, false};
  request.labels = folder.write("labels.jsonl", text);
  iql::train(request, nullptr, CancelFlag());
  CHECK(bytes("relabelled") == bytes("expected"));
  CHECK(bytes("relabelled") != bytes("plain"));
  const Json model = Json::parse(std::ifstream(folder / "relabelled" / "config.json"));
  CHECK(model["labels"]["episodes"] == 14);
  CHECK(model["labels"]["changed"] == 14);

  request.resume = true;
  request.labels.clear();
  expect_error(ErrorCode::kCheckpointInvalid, "labels", [&] { iql::train(request, nullptr, CancelFlag()); });
}

TEST_CASE("IQL labels: what is no label is named by its line") {
  const TemporaryFolder folder;
  const World world = random_world(10, 8, 4);
  write_world(folder / "data", world);
  const std::string good = label(world, 0, true).dump() + "\n";
  const auto refuse = [&](const std::string& text, const std::string& part,
                          ErrorCode code = ErrorCode::kDataInvalid) {
    auto data = iql::Transitions::load({folder / "data"});
    const auto path = folder.write("labels.jsonl", text);
    expect_error(code, part, [&] { iql::apply_labels(data, {folder / "data"}, path); });
  };
  refuse("", "found none");
  refuse(good + "success\n", "labels.jsonl:2");
  refuse(good + good, "of line 1 again");
  Json line = label(world, 1, true);
  line["success"] = 1;
  refuse(good + line.dump(), "success");
  line = label(world, 1, true);
  line["reward"] = 1;
  refuse(line.dump(), "no field 'reward'");
  line = label(world, 1, true);
  line["key"]["seed"] = "1";
  refuse(line.dump(), "seed");
  line["key"].erase("seed");
  refuse(line.dump(), "seed");
  line = label(world, 1, true);
  line["key"]["attempt"] = "x";
  refuse(line.dump(), "no field 'attempt'");
  line = label(world, 1, true);
  line["key"]["seed"] = 99;
  refuse(good + "\n" + line.dump(), "labels.jsonl:3: none of the embedded runs");

  auto data = iql::Transitions::load({folder / "data"});
  expect_error(ErrorCode::kFileNotFound, "nothing.jsonl",
               [&] { iql::apply_labels(data, {folder / "data"}, folder / "nothing.jsonl"); });
  const auto labels = folder.write("labels.jsonl", good);
  fs::resize_file(folder / "data" / "episodes.jsonl", 0);
  expect_error(ErrorCode::kDataInvalid, "expected 10 episodes",
               [&] { iql::apply_labels(data, {folder / "data"}, labels); });
}

}  // namespace
}  // namespace boq::test
