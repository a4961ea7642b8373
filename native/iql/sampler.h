// Batches of transitions: which ones a step sees, gathered row by row and put on the device, with the numbers
// that the loss needs of each.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "native/iql/config.h"
#include "native/iql/iql.h"
#include "native/iql/standardiser.h"
#include "native/iql/transitions.h"

namespace boq::iql {

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

}  // namespace boq::iql
