// Small worlds with known answers, written as embedding folders.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "native/core/json.h"
#include "native/iql/scorer.h"
#include "native/iql/trainer.h"

namespace boq::test {

/// One recorded step: rows of the world's state and action tables.
struct Move {
  int64_t state;
  int64_t action;
  std::vector<int64_t> candidates = {};  ///< all that was offered; empty: the action alone
};

struct Episode {
  std::vector<Move> moves;
  float reward = 0;          ///< of the last move; above 0 counts as a success
  int64_t after_limit = -1;  ///< a limit ended it in this state
  float split = 0.9f;        ///< below the validation fraction: held out
  int32_t task = 0;
};

struct World {
  at::Tensor states, actions, tasks;  ///< [n, E]
  std::vector<Episode> episodes;
  std::string fingerprint = "test";
  int64_t rows_per_shard = 65536;
};

/// `n` one-hot rows of width `width`, starting at column `first`.
at::Tensor one_hot_rows(int64_t n, int64_t width, int64_t first = 0);

/// The key of an episode, as episodes.jsonl has it.
Json episode_key(const World& world, size_t episode);

void write_world(const std::filesystem::path& folder, const World& world);

/// A world of noisy states in which half the episodes succeed, depending on their actions.
World random_world(int64_t episodes, int64_t width, uint64_t seed);

/// Settings under which a small world is learned in about a second: a narrow net without dropout or decay.
Json small_config(int64_t steps);

/// The same with all that a run must carry over: dropout, standardised inputs, two heads, validation,
/// checkpoints every ten steps.
Json run_config(int64_t steps);

/// Two model folders hold the same model and the same history, to the byte.
void check_same_run(const std::filesystem::path& expected, const std::filesystem::path& found);

iql::TrainSummary train_quietly(const std::filesystem::path& data, const std::filesystem::path& out,
                                const Json& config, bool resume = false);

/// Q of one state and action row, with the task in row `task`; V likewise.
struct Values {
  double q, v;
};
Values values_at(const iql::Scorer& scorer, const World& world, int64_t state, int64_t action,
                 int64_t task = 0);

}  // namespace boq::test
