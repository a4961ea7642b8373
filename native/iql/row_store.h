// The vectors of embedded runs: one stream's shards stay memory-mapped, whichever folders they lie in, and
// rows are gathered into batches.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <filesystem>
#include <span>
#include <vector>

#include "native/core/json.h"
#include "native/iql/standardiser.h"

namespace boq::iql {

/// The rows of one stream over all folders.
class RowStore {
 public:
  /// Adds a folder's shards; its row 0 becomes row `size()` of before. `stream`: the manifest's entry, {rows,
  /// shards}. Throws BOQ_FILE_*, BOQ_DTYPE_UNSUPPORTED, BOQ_SHAPE_MISMATCH, BOQ_DATA_INVALID.
  void add(const std::filesystem::path& folder, const JsonView& stream, int64_t rows_per_shard,
           int64_t width);
  int64_t size() const { return size_; }
  int64_t width() const { return width_; }

  /// Rows as float32 or bfloat16 [n, E] on the CPU, standardised. A negative id gives a row of zeros.
  at::Tensor gather(std::span<const int64_t> ids, const Standardiser& standardiser,
                    at::ScalarType dtype) const;

  /// Mean and deviation over rows, each counted weight[row] times. In double, in one pass through the file's
  /// order. Throws BOQ_NOT_FINITE.
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

}  // namespace boq::iql
