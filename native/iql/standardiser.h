// Standardised inputs: each dimension of a stream of embeddings shifted and scaled by the mean and the
// deviation that it has in training. Networks see embeddings only after this.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

namespace boq::iql {

/// Per-dimension mean and standard deviation of one stream, and the limit of the result. Empty: identity.
struct Standardiser {
  at::Tensor mean;  ///< float32 [E]
  at::Tensor std;   ///< float32 [E], 1 where a dimension is constant
  double clip = 0;  ///< 0: no limit

  bool is_identity() const { return !mean.defined(); }
  /// clamp((rows - mean) / std, -clip, clip) of float32 [n, E], on the rows' device.
  at::Tensor apply(const at::Tensor& rows) const;
};

/// One for each stream of embeddings.
struct Standardisers {
  Standardiser state, action, task;
};

/// Weighted mean and deviation of rows of width E that come one by one, in double.
class Moments {
 public:
  explicit Moments(int64_t width);

  /// Counts the row (float32, bfloat16 or float16 [E], in memory) `weight` times, 1 or more.
  void add(const void* row, at::ScalarType dtype, int64_t weight);

  /// Of all rows so far; mean 0 and deviation 1 where there were none. Throws BOQ_NOT_FINITE.
  Standardiser standardiser(double clip) const;

 private:
  std::vector<double> origin_, sum_, squares_;  // sums of (x - origin) and of its square
  double total_ = 0;
};

}  // namespace boq::iql
