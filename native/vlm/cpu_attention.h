// One piece of attention on the CPU, as the kernels of cpu_attention.cpp and cpu_attention_bf16.cpp take it.
#pragma once

#include <c10/util/BFloat16.h>

#include <cstdint>
#include <vector>

namespace boq::vlm::cpu {

/// A block of queries of one segment against the keys of one key head, for all query heads of its group.
template <class T>
struct AttentionTask {
  const T* q;  ///< query 0 of the segment, first head of the group
  const T* k;  ///< row 0 of the keys, this head
  const T* v;
  T* out;  ///< as q
  int64_t q_stride, k_stride, v_stride, out_stride;
  int64_t dim, group;
  int64_t first_query, last_query;
  /// Rows of the keys: those of the prefix, then the segment's own, as far as the last query sees.
  std::vector<int64_t> key_rows;
  int64_t prefix;
  bool is_causal;
  float scale;

  int64_t keys() const { return static_cast<int64_t>(key_rows.size()); }
  /// Keys that query `i` sees.
  int64_t visible(int64_t i) const { return is_causal ? prefix + i + 1 : keys(); }
};

/// Scratch memory of one thread, reused from task to task.
struct AttentionScratch {
  std::vector<float> keys, values, scores, queries;
  std::vector<uint32_t> key_pairs, value_pairs;
  std::vector<c10::BFloat16> weights, query_rows;
};

/// Products of bfloat16 pairs summed in float32: needs has_cpu_bf16(). Weights are rounded to bfloat16 before
/// they meet the values, as in the reference's kernel.
void attend_bf16(const AttentionTask<c10::BFloat16>& task, AttentionScratch& scratch);

}  // namespace boq::vlm::cpu
