// Q and V: one linear projection for each input stream, joined, then a multilayer perceptron (paper, B.2). K
// heads are K independent networks whose parameters lie in one [K, P] buffer, so that the optimizer, the
// gradient norm, the target copy and the checkpoint each are one pass over memory. The backward pass is
// written out: eight layers of two matrix products each need no autograd. A test compares it with autograd.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "native/iql/kernels.h"

namespace boq::iql {

struct NetworkShape {
  std::vector<std::string> streams;  ///< of the inputs, in order: state, action, task, match
  int64_t width = 0;                 ///< E of every stream
  int64_t projection = 1024;
  std::vector<int64_t> hidden;
  int64_t outputs = 1;

  /// Of one head. E = 2048: 11,188,225 for Q and 8,041,473 for V.
  int64_t parameter_count() const;
};

/// One linear layer and where it lies in a head's parameters.
struct Layer {
  std::string name;  ///< state_proj, hidden.0, out, ...
  int64_t in = 0;
  int64_t out = 0;
  int64_t weight_offset = 0;  ///< [out, in], row-major
  int64_t bias_offset = 0;    ///< [out]
};

/// What the forward pass leaves for the backward pass.
struct Tape {
  std::vector<at::Tensor> inputs;       ///< of the projections: [G, B, E] each
  std::vector<at::Tensor> activations;  ///< joined projections, then every hidden layer's output: [K, B, n]
  double dropout = 0;
};

/// Dropout of one forward pass: its rate and, for each group of heads, the key of its random numbers.
struct Dropout {
  double rate = 0;
  std::vector<uint64_t> keys;
  int64_t first_row = 0;  ///< see DropoutMask
};

class Network {
 public:
  Network() = default;
  /// Zero parameters. `half`: large matrix products in bfloat16, with float32 parameters and float32 outputs.
  Network(NetworkShape shape, int64_t heads, at::Device device, bool half);

  /// PyTorch's Linear: weights and biases uniform in +-1/sqrt(in). `id` separates the networks of a run. With
  /// several seeds the heads fall into as many groups of equal size, each as it would be alone.
  void initialise(const std::vector<uint64_t>& seeds, uint64_t id);

  const NetworkShape& shape() const { return shape_; }
  const std::vector<Layer>& layers() const { return layers_; }
  int64_t heads() const { return heads_; }
  bool is_half() const { return half_; }
  /// The type inputs are best given in; others are converted.
  at::ScalarType input_dtype() const;

  /// Values without dropout. inputs: one [B, E] a stream, or [G, B, E] for as many groups of heads; returns
  /// float32 [K, B, outputs].
  at::Tensor forward(const std::vector<at::Tensor>& inputs) const;
  /// As above with dropout, and a record for backward().
  at::Tensor forward(const std::vector<at::Tensor>& inputs, Dropout dropout, Tape& tape) const;
  /// gradients() := (or +=, where `accumulate`) the gradient of a loss whose gradient by the outputs is
  /// `grad` [K, B, outputs].
  void backward(const Tape& tape, const at::Tensor& grad, bool accumulate = false);

  /// Joins the projections with the first hidden layer, both linear up to its ReLU, into one matrix, which
  /// the forward pass without a tape then uses: for parameters that stay the same over many passes.
  /// parameters_changed() undoes it.
  void fold();
  /// Whether `rows` rows before the next change of parameters repay what fold() costs.
  bool is_worth_folding(int64_t rows) const;
  /// What fold() made: [K, hidden[0], streams * E] in the type of the products, and float32 [K, hidden[0]].
  const at::Tensor& folded_weight() const { return folded_weight_; }
  const at::Tensor& folded_bias() const { return folded_bias_; }

  /// float32 [K, P]. After writing to it call parameters_changed().
  const at::Tensor& parameters() const { return parameters_; }
  /// [K, P]: float32, or bfloat16 where products are: what they put out is not rounded a second time.
  const at::Tensor& gradients() const { return gradients_; }
  /// bfloat16 copy of the parameters; undefined where products are in float32.
  const at::Tensor& half_parameters() const { return half_parameters_; }
  void parameters_changed(bool half_is_current = false);

  /// Views of the parameters (of `buffer`, if given: [K, P]) by name: <head>.<layer>.{weight,bias}.
  std::vector<std::pair<std::string, at::Tensor>> named_views(const at::Tensor& buffer) const;
  /// Of one layer: [K, out, in] and [K, out].
  at::Tensor weight(const at::Tensor& buffer, const Layer& layer) const;
  at::Tensor bias(const at::Tensor& buffer, const Layer& layer) const;

 private:
  bool is_half(const Layer& layer) const;
  at::Tensor product(const at::Tensor& x, const Layer& layer) const;
  DropoutMask mask_of(const Dropout& dropout, size_t layer) const;
  void backward_layer(const Layer& layer, const at::Tensor& x, const at::Tensor& grad, bool accumulate,
                      at::Tensor* grad_x);

  NetworkShape shape_;
  int64_t heads_ = 0;
  bool half_ = false;
  std::vector<Layer> layers_;  // projections in the order of the streams, hidden layers, output
  int64_t row_ = 0;            // P with padding: every matrix starts on a cache line
  at::Tensor parameters_;
  at::Tensor gradients_;
  at::Tensor half_parameters_;
  at::Tensor folded_weight_;
  at::Tensor folded_bias_;
};

}  // namespace boq::iql
