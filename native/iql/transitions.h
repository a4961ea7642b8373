// Embedded runs as transitions: who was where, did what, and what came of it. The index arrays are in memory
// (about 60 bytes a transition); the vectors stay in their files.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "native/core/json.h"
#include "native/iql/row_store.h"

namespace boq::iql {

/// One embedding folder, for the record.
struct DataSource {
  std::string path;
  int64_t transitions = 0, episodes = 0;
  double success_rate = 0;  ///< of its episodes
};

/// All transitions of one training, of several runs one after the other.
struct Transitions {
  /// Loads embedding folders of one fingerprint. Throws BOQ_DATA_EMPTY, BOQ_FILE_*, BOQ_DATA_INVALID (indices
  /// out of range, episodes out of order), BOQ_FINGERPRINT_MISMATCH, BOQ_SHAPE_MISMATCH.
  static Transitions load(const std::vector<std::filesystem::path>& folders);

  int64_t size() const { return static_cast<int64_t>(state.size()); }
  int64_t episodes() const { return static_cast<int64_t>(episode_success.size()); }

  // Of every transition, in the order of episodes and steps.
  std::vector<int64_t> state, action, task, next_state;  ///< rows; next_state -1 where nothing follows
  std::vector<float> reward;
  std::vector<uint8_t> done, timeout;  ///< the episode's last; ended by a limit
  std::vector<int32_t> episode, step;  ///< its episode's number; its own within the episode, from 0
  std::vector<int32_t> chosen;         ///< number of the executed action among the step's candidates
  /// Candidates of transition t: candidate_action (rows) from candidate_offset[t] to candidate_offset[t + 1].
  std::vector<int64_t> candidate_offset, candidate_action;

  // Of every episode.
  std::vector<int32_t> episode_task;  ///< a number within task_names
  std::vector<uint8_t> episode_success;
  std::vector<int64_t> episode_first;  ///< transition
  std::vector<int32_t> episode_steps;
  std::vector<float> episode_split;  ///< in [0, 1): a low value is held out, see split.h
  std::vector<std::string> task_names;

  RowStore states, actions, tasks;  ///< the vectors that rows refer to
  int64_t width = 0;                ///< E, of every vector
  std::string fingerprint;          ///< of the embedder
  Json profile;                     ///< what the fingerprint is a hash of
  std::vector<DataSource> sources;
};

}  // namespace boq::iql
