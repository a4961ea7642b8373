#include "native/vlm/ops.h"

#include <ATen/ATen.h>

#include "native/core/staging.h"
#include "native/vlm/cpu_kernels.h"

namespace boq::vlm {

at::Tensor Compute::place(const at::Tensor& tensor) const {
  auto placed = at::empty(tensor.sizes(), at::TensorOptions().device(device).dtype(dtype));
  stage(placed, tensor);
  return placed;
}

Linear Linear::take(const WeightScope& scope, const std::string& name, int64_t in, int64_t out, bool has_bias,
                    const Compute& compute) {
  return take_joined(scope, {{name, out}}, in, has_bias, compute);
}

Linear Linear::take_joined(const WeightScope& scope,
                           const std::vector<std::pair<std::string, int64_t>>& names_outs, int64_t in,
                           bool has_bias, const Compute& compute) {
  int64_t total = 0;
  for (const auto& [name, out] : names_outs) total += out;
  const auto options = at::TensorOptions().device(compute.device).dtype(compute.dtype);
  auto weight = at::empty({total, in}, options);
  auto bias = has_bias ? at::empty({total}, options) : at::Tensor();
  int64_t row = 0;
  for (const auto& [name, out] : names_outs) {
    stage(weight.narrow(0, row, out), scope.take(name + ".weight", {out, in}));
    scope.release(name + ".weight");
    if (has_bias) stage(bias.narrow(0, row, out), scope.take(name + ".bias", {out}));
    row += out;
  }
  return Linear(std::move(weight), std::move(bias));
}

at::Tensor Linear::operator()(const at::Tensor& x) const { return at::linear(x, weight_, bias_); }

void Linear::add_to(at::Tensor& residual, const at::Tensor& x) const {
  if (residual.scalar_type() == at::kFloat) {
    residual.addmm_(x, weight_.t());
    if (bias_.defined()) residual.add_(bias_);
  } else {
    // The reference rounds the product to the type before it adds; addmm_ would add in float32.
    residual.add_(at::linear(x, weight_, bias_));
  }
}

at::Tensor rms_norm(const at::Tensor& x, const at::Tensor& weight, double eps) {
  if (x.is_cpu()) return cpu::rms_norm(x, weight, eps);
  const auto wide = x.to(at::kFloat);
  const auto scale = at::rsqrt(wide.square().mean(-1, /*keepdim=*/true) + eps);
  return (wide * scale).to(x.scalar_type()).mul_(weight);
}

at::Tensor silu_mul(const at::Tensor& gate_up) {
  if (gate_up.is_cpu()) return cpu::silu_mul(gate_up);
  const auto n = gate_up.size(-1) / 2;
  return at::silu(gate_up.narrow(-1, 0, n)).mul_(gate_up.narrow(-1, n, n));
}

void rotate_heads(const at::Tensor& x, const Rotary& rotary) {
  if (x.is_cpu()) return cpu::rotate_heads(x, rotary.cos, rotary.sin);
  const auto pairs = rotary.cos.size(-1);
  const auto cos = rotary.cos.unsqueeze(1), sin = rotary.sin.unsqueeze(1);
  const auto wide = x.to(rotary.cos.scalar_type());
  const auto low = wide.narrow(-1, 0, pairs), high = wide.narrow(-1, pairs, pairs);
  const auto new_low = low * cos - high * sin;
  const auto new_high = high * cos + low * sin;
  x.narrow(-1, 0, pairs).copy_(new_low);
  x.narrow(-1, pairs, pairs).copy_(new_high);
}

}  // namespace boq::vlm
