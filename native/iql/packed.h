// Trained networks prepared for the few rows of one decision. Then the weights are read once and used a
// handful of times, so that memory decides: the projections are folded into the first hidden layer, large
// matrices are held as 16-bit integers with a scale for each row, a state or task that several candidates
// share is multiplied once, and what came of the latest tasks is kept: all steps of an episode have the same.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "native/iql/networks.h"

namespace boq::iql {

/// A matrix [out, in] on the CPU. From 2^17 weights on a row is stored as scale * int16, which is off by at
/// most 1/65,534 of the row's largest weight; smaller matrices stay float32.
struct PackedMatrix {
  explicit PackedMatrix(const at::Tensor& weight);

  at::Tensor values;  ///< int16 or float32 [out, stride], zero from column `in` on
  at::Tensor scale;   ///< float32 [out], with int16 only
  int64_t out = 0, stride = 0;
};

/// What one product of a layer reads and writes: y[i] = W x[i].
struct PackedProduct {
  const PackedMatrix* matrix;
  const float* x;  ///< [rows, matrix->stride]
  float* y;        ///< [rows, y_stride]
  int64_t rows, y_stride;
};

/// All products in one parallel region. A row's result does not depend on the other rows or on the threads.
void multiply(const std::vector<PackedProduct>& products);

class PackedNetwork {
 public:
  PackedNetwork();
  /// Of a network on the CPU with at least one hidden layer.
  explicit PackedNetwork(Network network);
  PackedNetwork(PackedNetwork&&) noexcept;
  PackedNetwork& operator=(PackedNetwork&&) noexcept;
  ~PackedNetwork();

  /// Values without dropout. inputs: float32 [n_i, E], one a stream; row j of the result takes row rows[i][j]
  /// of stream i. Returns float32 [K, n, outputs]. Safe to call from several threads.
  at::Tensor forward(const std::vector<at::Tensor>& inputs,
                     const std::vector<std::vector<int64_t>>& rows) const;

 private:
  struct PackedLayer {
    std::vector<PackedMatrix> weights;  // of every head; the first layer: of every stream of every head
    at::Tensor bias;                    // [K, out]
  };

  class TaskMemory;

  int64_t heads_ = 0, streams_ = 0, task_stream_ = -1;
  std::unique_ptr<TaskMemory> tasks_;
  std::vector<PackedLayer> layers_;
};

}  // namespace boq::iql
