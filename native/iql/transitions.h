// Embedded runs as transitions: the vectors stay memory-mapped, the index arrays are in memory (about 60
// bytes a transition), a batch is gathered row by row.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "native/core/json.h"
#include "native/iql/config.h"
#include "native/iql/iql.h"

namespace boq::iql {

/// Per-dimension mean and standard deviation of one stream, and the limit of the result. Empty: identity.
struct Standardiser {
  at::Tensor mean;  ///< float32 [E]
  at::Tensor std;   ///< float32 [E], 1 where a dimension is constant
  double clip = 0;  ///< 0: no limit

  bool is_identity() const { return !mean.defined(); }
  at::Tensor apply(const at::Tensor& rows) const;
};

struct Standardisers {
  Standardiser state, action, task;
};

/// The rows of one stream over all folders.
class RowStore {
 public:
  /// Adds a folder's shards; its row 0 becomes row `size()` of before.
  void add(const std::filesystem::path& folder, const JsonView& stream, int64_t rows_per_shard,
           int64_t width);
  int64_t size() const { return size_; }
  int64_t width() const { return width_; }

  /// Rows as float32 or bfloat16 [n, E] on the CPU, standardised. A negative id gives a row of zeros.
  at::Tensor gather(std::span<const int64_t> ids, const Standardiser& standardiser,
                    at::ScalarType dtype) const;

  /// Mean and deviation over rows, each counted weight[row] times. In double, in one pass through the file's
  /// order.
  Standardiser statistics(const std::vector<int64_t>& weight, double clip) const;

 private:
  struct Shard {
    int64_t first;
    at::Tensor rows;  // mapped
  };
  const void* row(int64_t id, at::ScalarType* dtype) const;

  std::vector<Shard> shards_;
  int64_t size_ = 0;
  int64_t width_ = 0;
};

struct DataSource {
  std::string path;
  int64_t transitions = 0, episodes = 0;
  double success_rate = 0;
};

struct Transitions {
  /// Loads embedding folders of one fingerprint. Throws BOQ_DATA_EMPTY, BOQ_FILE_*, BOQ_DATA_INVALID (indices
  /// out of range, episodes out of order), BOQ_FINGERPRINT_MISMATCH, BOQ_SHAPE_MISMATCH.
  static Transitions load(const std::vector<std::filesystem::path>& folders);

  int64_t size() const { return static_cast<int64_t>(state.size()); }
  int64_t episodes() const { return static_cast<int64_t>(episode_success.size()); }

  // Of every transition, in the order of episodes and steps.
  std::vector<int64_t> state, action, task, next_state;  ///< rows
  std::vector<float> reward;
  std::vector<uint8_t> done, timeout;
  std::vector<int32_t> episode, step, chosen;
  std::vector<int64_t> candidate_offset, candidate_action;
  // Of every episode.
  std::vector<int32_t> episode_task;
  std::vector<uint8_t> episode_success;
  std::vector<int64_t> episode_first;
  std::vector<int32_t> episode_steps;
  std::vector<float> episode_split;
  std::vector<std::string> task_names;

  RowStore states, actions, tasks;
  int64_t width = 0;
  std::string fingerprint;
  Json profile;
  std::vector<DataSource> sources;
};

/// Which transitions train and which are held out.
struct Split {
  std::vector<int64_t> training, validation;
  double training_success_rate = 0;
  int64_t training_episodes = 0, validation_episodes = 0;
};

/// Validation: episodes whose split value is below `fraction`.
Split split_of(const Transitions& data, double fraction);

/// Deals the outcomes of the training episodes out anew, by `seed`: the control in which nothing can be
/// learned.
void shuffle_outcomes(Transitions& data, double validation_fraction, uint64_t seed);

Standardisers standardisers_for(const Transitions& data, const std::vector<int64_t>& training, double clip);

/// Turns step numbers into batches of one model. What a step sees depends on the seed and its number alone.
class Sampler {
 public:
  Sampler(const Transitions& data, std::vector<int64_t> training, Standardisers standardisers,
          const IqlConfig& config, at::Device device, at::ScalarType dtype);

  /// Gives this process the `rank`-th of `size` equal parts of every batch. Throws BOQ_CONFIG_INVALID where
  /// batchSize cannot be divided so.
  void set_share(int rank, int size);

  /// Transition numbers of one step, of all processes.
  std::vector<int64_t> indices(int64_t step) const;
  Batch batch(int64_t step) const;
  /// The batch of given transitions, for measuring: without what depends on a step.
  Batch batch_of(std::span<const int64_t> transitions) const;
  /// Reward, discount and outcome of every transition of the data, [1, T].
  Batch numbers_of_all() const;
  /// [K, mine]: weights by head for `mine`, a part of the batch `all`, where headShare is below 1.
  at::Tensor head_weights(std::span<const int64_t> all, std::span<const int64_t> mine) const;
  /// All candidates that were offered in the given transitions.
  Batch::Candidates candidates_of(std::span<const int64_t> transitions) const;

 private:
  at::Tensor rows(const RowStore& store, const Standardiser& standardiser,
                  std::span<const int64_t> ids) const;
  Batch numbers_of(std::span<const int64_t> transitions) const;
  void add_pairs(Batch& batch, int64_t step) const;
  void find_pairs();

  const Transitions& data_;
  std::vector<int64_t> training_;
  Standardisers standardisers_;
  IqlConfig config_;
  at::Device device_;
  at::ScalarType dtype_;
  int64_t rank_ = 0, size_ = 1;
  std::vector<float> returns_;                      // monte-carlo or outcome, of every transition
  std::vector<std::pair<int64_t, int64_t>> pairs_;  // transitions of one state and task, better return first
};

/// Discounted return that follows each transition, within its episode.
std::vector<float> discounted_returns(const Transitions& data, double gamma);

}  // namespace boq::iql
