#include "native/vlm/attention.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>

#include "native/core/staging.h"
#include "native/vlm/cpu_kernels.h"

namespace boq::vlm {

SegmentAttention::SegmentAttention(const Segments& segments, bool is_causal, const at::Device& device)
    : segments_(segments), is_causal_(is_causal) {
  if (device.is_cpu()) return;
  std::vector<int64_t> rows;
  std::vector<int32_t> query_offsets{0}, key_offsets{0};
  for (size_t s = 0; s < segments.size(); ++s) {
    if (!segments.prefixes.empty()) {
      for (const auto& range : segments.prefixes[s]) {
        for (auto row = range.begin; row < range.end; ++row) rows.push_back(row);
      }
    }
    for (int64_t i = 0; i < segments.length(s); ++i)
      rows.push_back(segments.offsets[s] + segments.key_shift + i);
    query_offsets.push_back(static_cast<int32_t>(segments.offsets[s + 1]));
    key_offsets.push_back(static_cast<int32_t>(rows.size()));
    longest_keys_ = std::max<int64_t>(longest_keys_, key_offsets[s + 1] - key_offsets[s]);
  }
  if (!segments.prefixes.empty() || segments.key_shift > 0) {
    key_rows_ = upload(at::tensor(rows, at::kLong), device);
  }
  query_offsets_ = upload(at::tensor(query_offsets, at::kInt), device);
  key_offsets_ = upload(at::tensor(key_offsets, at::kInt), device);
}

at::Tensor SegmentAttention::operator()(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v) const {
  if (q.is_cpu()) return cpu::attend(q, k, v, segments_, is_causal_);
  const auto keys = key_rows_.defined() ? k.index_select(0, key_rows_) : k;
  const auto values = key_rows_.defined() ? v.index_select(0, key_rows_) : v;
  return q.scalar_type() == at::kFloat ? attend_batches(q, keys, values) : attend_flash(q, keys, values);
}

at::Tensor SegmentAttention::attend_flash(const at::Tensor& q, const at::Tensor& k,
                                          const at::Tensor& v) const {
  // One launch for all segments. Causal is aligned to the last key, so prefixes are seen whole.
  const auto scale = 1 / std::sqrt(static_cast<double>(q.size(2)));
  const auto result = at::_flash_attention_forward(q, k, v, query_offsets_, key_offsets_, segments_.longest,
                                                   longest_keys_, /*dropout_p=*/0.0, is_causal_,
                                                   /*return_debug_mask=*/false, scale);
  return std::get<0>(result).flatten(1);
}

/// float32 has no such kernel: runs of segments of equal length make one dense batch.
at::Tensor SegmentAttention::attend_batches(const at::Tensor& q, const at::Tensor& k,
                                            const at::Tensor& v) const {
  const auto rows = q.size(0), heads = q.size(1), kv_heads = k.size(1), dim = q.size(2);
  auto out = at::empty({rows, heads, dim}, q.options());
  int64_t key = 0;
  for (size_t first = 0; first < segments_.size();) {
    const auto length = segments_.length(first), prefix = segments_.prefix_length(first);
    size_t last = first + 1;
    while (last < segments_.size() && segments_.length(last) == length &&
           segments_.prefix_length(last) == prefix)
      ++last;
    const auto count = static_cast<int64_t>(last - first);
    const auto batch = [&](const at::Tensor& x, int64_t begin, int64_t size) {
      return x.narrow(0, begin, count * size).unflatten(0, {count, size}).transpose(1, 2);
    };
    auto keys = batch(k, key, prefix + length), values = batch(v, key, prefix + length);
    if (kv_heads != heads) {
      keys = keys.repeat_interleave(heads / kv_heads, 1);
      values = values.repeat_interleave(heads / kv_heads, 1);
    }
    at::Tensor mask;
    if (is_causal_ && prefix > 0)
      mask = at::ones({length, prefix + length}, q.options().dtype(at::kBool)).tril(prefix);
    const auto begin = segments_.offsets[first];
    const auto result = at::scaled_dot_product_attention(
        batch(q, begin, length), keys, values,
        mask.defined() ? std::optional<at::Tensor>(mask) : std::nullopt, 0.0, is_causal_ && !mask.defined());
    out.narrow(0, begin, count * length).unflatten(0, {count, length}).copy_(result.transpose(1, 2));
    key += count * (prefix + length);
    first = last;
  }
  return out.flatten(1);
}

}  // namespace boq::vlm
