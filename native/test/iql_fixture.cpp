#include "native/test/iql_fixture.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <fstream>

#include "doctest/doctest.h"
#include "native/core/safetensors.h"
#include "native/iql/random.h"
#include "native/test/temporary_folder.h"

namespace boq::test {
namespace {

namespace fs = std::filesystem;

template <class T>
at::Tensor tensor_of(const std::vector<T>& values) {
  return at::from_blob(const_cast<T*>(values.data()), {static_cast<int64_t>(values.size())},
                       at::TensorOptions(c10::CppTypeToScalarType<T>::value))
      .clone();
}

Json write_stream(const fs::path& folder, const std::string& name, const at::Tensor& rows,
                  int64_t rows_per_shard) {
  Json shards = Json::array();
  for (int64_t first = 0, i = 0; first < rows.size(0); first += rows_per_shard, ++i) {
    const std::string file = name + "-" + std::to_string(10000 + i).substr(1) + ".safetensors";
    write_safetensors(folder / file,
                      {{"rows", rows.narrow(0, first, std::min(rows_per_shard, rows.size(0) - first))}});
    shards.push_back(file);
  }
  return {{"rows", rows.size(0)}, {"shards", shards}};
}

}  // namespace

at::Tensor one_hot_rows(int64_t n, int64_t width, int64_t first) {
  return at::eye(width, at::kFloat).narrow(0, first, n).clone();
}

Json episode_key(const World& world, size_t episode) {
  return {{"benchmark", "test"}, {"task", "task-" + std::to_string(world.episodes[episode].task)},
          {"seed", episode},     {"policy", world.fingerprint},
          {"selector", "first"}, {"generation", "none"},
          {"repeat", 0}};
}

void write_world(const fs::path& folder, const World& world) {
  fs::create_directories(folder);
  std::vector<int64_t> state, action, task, next_state, candidate_offset = {0}, candidate_action,
                                                        episode_first;
  std::vector<float> reward, split;
  std::vector<uint8_t> done, timeout, explored, success;
  std::vector<int32_t> episode, step, chosen, episode_task, episode_steps;
  int64_t successes = 0;
  for (size_t e = 0; e < world.episodes.size(); ++e) {
    const Episode& it = world.episodes[e];
    episode_first.push_back(static_cast<int64_t>(state.size()));
    episode_steps.push_back(static_cast<int32_t>(it.moves.size()));
    episode_task.push_back(it.task);
    success.push_back(it.reward > 0);
    successes += it.reward > 0;
    split.push_back(it.split);
    for (size_t i = 0; i < it.moves.size(); ++i) {
      const bool last = i + 1 == it.moves.size();
      const Move& move = it.moves[i];
      state.push_back(move.state);
      action.push_back(move.action);
      task.push_back(it.task);
      next_state.push_back(last ? it.after_limit : it.moves[i + 1].state);
      reward.push_back(last ? it.reward : 0);
      done.push_back(last);
      timeout.push_back(last && it.after_limit >= 0);
      episode.push_back(static_cast<int32_t>(e));
      step.push_back(static_cast<int32_t>(i));
      explored.push_back(0);
      const auto offered = move.candidates.empty() ? std::vector<int64_t>{move.action} : move.candidates;
      chosen.push_back(
          static_cast<int32_t>(std::find(offered.begin(), offered.end(), move.action) - offered.begin()));
      candidate_action.insert(candidate_action.end(), offered.begin(), offered.end());
      candidate_offset.push_back(static_cast<int64_t>(candidate_action.size()));
    }
  }
  write_safetensors(folder / "index.safetensors", {{"state", tensor_of(state)},
                                                   {"action", tensor_of(action)},
                                                   {"task", tensor_of(task)},
                                                   {"next_state", tensor_of(next_state)},
                                                   {"reward", tensor_of(reward)},
                                                   {"done", tensor_of(done)},
                                                   {"timeout", tensor_of(timeout)},
                                                   {"episode", tensor_of(episode)},
                                                   {"step", tensor_of(step)},
                                                   {"chosen", tensor_of(chosen)},
                                                   {"explored", tensor_of(explored)},
                                                   {"candidate_offset", tensor_of(candidate_offset)},
                                                   {"candidate_action", tensor_of(candidate_action)},
                                                   {"episode_task", tensor_of(episode_task)},
                                                   {"episode_success", tensor_of(success)},
                                                   {"episode_first", tensor_of(episode_first)},
                                                   {"episode_steps", tensor_of(episode_steps)},
                                                   {"episode_split", tensor_of(split)}});
  std::ofstream lines(folder / "episodes.jsonl");
  for (size_t e = 0; e < world.episodes.size(); ++e)
    lines << Json{{"key", episode_key(world, e)}, {"outcome", success[e] ? "success" : "failure"}}.dump()
          << '\n';
  Json names = Json::array();
  for (int64_t i = 0; i < world.tasks.size(0); ++i) names.push_back("task-" + std::to_string(i));
  const Json manifest = {
      {"version", 1},
      {"fingerprint", world.fingerprint},
      {"profile", {{"name", "test"}}},
      {"width", world.states.size(1)},
      {"dtype", "float32"},
      {"rowsPerShard", world.rows_per_shard},
      {"streams",
       {{"state", write_stream(folder, "state", world.states, world.rows_per_shard)},
        {"action", write_stream(folder, "action", world.actions, world.rows_per_shard)},
        {"task", write_stream(folder, "task", world.tasks, world.rows_per_shard)}}},
      {"index", "index.safetensors"},
      {"transitions", state.size()},
      {"candidates", candidate_action.size()},
      {"episodes", world.episodes.size()},
      {"taskNames", names},
      {"successRate",
       static_cast<double>(successes) / std::max<double>(1, static_cast<double>(world.episodes.size()))}};
  std::ofstream(folder / "manifest.json") << manifest.dump(2);
}

World random_world(int64_t episodes, int64_t width, uint64_t seed) {
  World world;
  const int64_t steps = 3;
  const auto noise = [&](int64_t rows, uint64_t what) {
    at::Tensor values = at::empty({rows, width}, at::kFloat);
    for (int64_t i = 0; i < rows * width; ++i)
      values.mutable_data_ptr<float>()[i] =
          static_cast<float>(2 * iql::draw_unit(iql::mix_bits(seed) + what, static_cast<uint64_t>(i)) - 1);
    return values;
  };
  world.states = noise(episodes * steps, 1);
  world.actions = noise(8, 2);
  world.tasks = noise(2, 3);
  for (int64_t e = 0; e < episodes; ++e) {
    const auto draw = [&](uint64_t what, int64_t n) {
      return iql::draw_index(iql::mix_bits(seed) + what, static_cast<uint64_t>(e), n);
    };
    Episode episode;
    for (int64_t i = 0; i < steps; ++i) {
      const int64_t first = draw(10 + static_cast<uint64_t>(i), 6);
      episode.moves.push_back({e * steps + i, first, {first, first + 1, first + 2}});
    }
    episode.reward = episode.moves.back().action % 2 == 0 ? 1.0f : 0.0f;
    episode.split = static_cast<float>(e % 10) / 10;
    episode.task = static_cast<int32_t>(e % 2);
    world.episodes.push_back(std::move(episode));
  }
  return world;
}

Json small_config(int64_t steps) {
  return {{"steps", steps},         {"batchSize", 64},
          {"projection", 32},       {"hidden", {64, 32}},
          {"dropout", 0},           {"weightDecay", 0},
          {"learningRate", 2e-3},   {"targetPeriod", 20},
          {"standardise", false},   {"tau", 0.5},
          {"precision", "float32"}, {"validationFraction", 0},
          {"regressor", false},     {"allowSingleOutcome", true}};
}

Json run_config(int64_t steps) {
  Json config = small_config(steps);
  config.update({{"dropout", 0.1},
                 {"standardise", true},
                 {"validationFraction", 0.2},
                 {"heads", 2},
                 {"checkpointEvery", 10}});
  return config;
}

void check_same_run(const fs::path& expected, const fs::path& found) {
  for (const char* name : {"model.safetensors", "metrics.jsonl"}) {
    INFO(found.string(), " ", name);
    CHECK(read_bytes(expected / name) == read_bytes(found / name));
  }
}

iql::TrainSummary train_quietly(const fs::path& data, const fs::path& out, const Json& config, bool resume) {
  at::set_num_threads(1);  // threads would wait for one another longer than such narrow nets compute
  iql::TrainRequest request;
  request.data = {data};
  request.out = out;
  request.config = config;
  request.resume = resume;
  return iql::train(request, nullptr, CancelFlag());
}

Values values_at(const iql::Scorer& scorer, const World& world, int64_t state, int64_t action, int64_t task) {
  const auto scores = scorer.score({world.states.narrow(0, state, 1), world.tasks.narrow(0, task, 1),
                                    world.actions.narrow(0, action, 1), at::zeros({1}, at::kInt)});
  return {scores.q.item<double>(), scores.v.item<double>()};
}

}  // namespace boq::test
