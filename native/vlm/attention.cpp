#include "native/vlm/attention.h"

#include <ATen/ATen.h>

#include "native/vlm/cpu_kernels.h"

namespace boq::vlm {

at::Tensor attend(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const Segments& segments,
                  bool is_causal) {
  if (q.is_cpu()) return cpu::attend(q, k, v, segments, is_causal);
  const auto rows = q.size(0), heads = q.size(1), kv_heads = k.size(1), dim = q.size(2);
  auto out = at::empty({rows, heads, dim}, q.options());
  // Runs of equal length make one dense batch.
  for (size_t first = 0; first < segments.size();) {
    size_t last = first + 1;
    while (last < segments.size() && segments.length(last) == segments.length(first)) ++last;
    const auto begin = segments.offsets[first], length = segments.length(first);
    const auto count = static_cast<int64_t>(last - first);
    const auto batch = [&](const at::Tensor& x) {
      return x.narrow(0, begin, count * length).unflatten(0, {count, length}).transpose(1, 2);
    };
    auto keys = batch(k), values = batch(v);
    if (kv_heads != heads) {
      keys = keys.repeat_interleave(heads / kv_heads, 1);
      values = values.repeat_interleave(heads / kv_heads, 1);
    }
    const auto result = at::scaled_dot_product_attention(batch(q), keys, values, {}, 0.0, is_causal);
    out.narrow(0, begin, count * length).unflatten(0, {count, length}).copy_(result.transpose(1, 2));
    first = last;
  }
  return out.flatten(1);
}

}  // namespace boq::vlm
