// Attention over packed sequences: rows of all sequences one after the other, no padding, no mask tensor.
#pragma once

#include <ATen/core/Tensor.h>

#include "native/vlm/layout.h"

namespace boq::vlm {

/// Attention within the segments of one forward pass, for every layer that has the same ones: what a device
/// must know about them is uploaded once.
class SegmentAttention {
 public:
  /// `segments` must outlive this. Causal within a segment by row index, where asked.
  SegmentAttention(const Segments& segments, bool is_causal, const at::Device& device);

  /// q [rows, heads, d], k and v [key rows, kv_heads, d] (strided views are fine); query head a uses key head
  /// a / (heads / kv_heads); scale d^-0.5. Returns [rows, heads * d].
  at::Tensor operator()(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v) const;

 private:
  at::Tensor attend_flash(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v) const;
  at::Tensor attend_batches(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v) const;

  const Segments& segments_;
  bool is_causal_;
  /// Only on CUDA: rows of the keys of every segment one after the other, where they are not those of the
  /// queries; offsets of queries and keys in int32.
  at::Tensor key_rows_, query_offsets_, key_offsets_;
  int64_t longest_keys_ = 0;
};

}  // namespace boq::vlm
