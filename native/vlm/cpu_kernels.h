// Fused CPU loops over rows of float32 or bfloat16, with the roundings of the reference. Rows are `*_stride`
// elements apart; everything runs on all of libtorch's threads.
#pragma once

#include <ATen/core/Tensor.h>

#include "native/vlm/layout.h"

namespace boq::vlm::cpu {

/// See ops.h for what each computes. All tensors are float32 or bfloat16 with unit last stride.
at::Tensor rms_norm(const at::Tensor& x, const at::Tensor& weight, double eps);
at::Tensor silu_mul(const at::Tensor& gate_up);
void rotate_heads(const at::Tensor& x, const at::Tensor& cos, const at::Tensor& sin);

/// See attention.h. Scores, softmax and sums in float32.
at::Tensor attend(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const Segments& segments,
                  bool is_causal);

}  // namespace boq::vlm::cpu
