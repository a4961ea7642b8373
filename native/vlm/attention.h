// Attention over packed sequences: rows of all sequences one after the other, no padding, no mask tensor.
#pragma once

#include <ATen/core/Tensor.h>

#include "native/vlm/layout.h"

namespace boq::vlm {

/// q [rows, heads, d], k and v [rows, kv_heads, d] (strided views are fine); query head a uses key head
/// a / (heads / kv_heads); scale d^-0.5. Causal within a segment by row index, where asked. Returns [rows,
/// heads * d].
at::Tensor attend(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const Segments& segments,
                  bool is_causal);

}  // namespace boq::vlm
