// The elementwise pieces of both transformers, with the roundings of the reference: they decide parity in
// bfloat16.
#pragma once

#include <ATen/core/Tensor.h>

#include "native/core/weights.h"

namespace boq::vlm {

/// Where and in which type a model computes.
struct Compute {
  at::Device device = at::kCPU;
  at::ScalarType dtype = at::kFloat;

  /// A copy in this type on this device; shares nothing with `tensor` where anything had to change.
  at::Tensor place(const at::Tensor& tensor) const;
};

/// y = x W^T + b for x [rows, in], weight [out, in], bias [out] or undefined.
class Linear {
 public:
  Linear() = default;
  Linear(at::Tensor weight, at::Tensor bias) : weight_(std::move(weight)), bias_(std::move(bias)) {}

  /// Takes name.weight and, where `has_bias`, name.bias.
  static Linear take(const WeightScope& scope, const std::string& name, int64_t in, int64_t out,
                     bool has_bias, const Compute& compute);
  /// Several layers with the same input as one: the outputs side by side.
  static Linear take_joined(const WeightScope& scope,
                            const std::vector<std::pair<std::string, int64_t>>& names_outs, int64_t in,
                            bool has_bias, const Compute& compute);

  at::Tensor operator()(const at::Tensor& x) const;
  /// residual + operator()(x), in place in `residual`.
  void add_to(at::Tensor& residual, const at::Tensor& x) const;

 private:
  at::Tensor weight_;
  at::Tensor bias_;
};

/// Statistics and product in float32, rounded to the type of x, then times `weight` in that type.
at::Tensor rms_norm(const at::Tensor& x, const at::Tensor& weight, double eps);

/// silu(gate) * up for gate_up [rows, 2 * n] = [gate | up]; silu is rounded to the type before the product.
at::Tensor silu_mul(const at::Tensor& gate_up);

/// cos and sin of rotary angles: [rows, pairs].
struct Rotary {
  at::Tensor cos;
  at::Tensor sin;
};

/// Rotates pair (d, d + pairs) of every head of x [rows, heads, 2 * pairs] in place, in the type of `rotary`:
/// the vision tower computes in float32 and rounds once, the text model in its own type throughout.
void rotate_heads(const at::Tensor& x, const Rotary& rotary);

}  // namespace boq::vlm
