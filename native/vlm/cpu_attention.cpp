// Attention on the CPU. One task is a block of queries of one segment against the keys of one key head; all
// query heads of the group are served while the packed keys are in the cache. Scores of a few rows at a time
// are kept whole, so softmax is exact and nothing is rescaled.
#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <vector>

#include "native/core/device.h"
#include "native/core/error.h"
#include "native/core/simd.h"
#include "native/vlm/cpu_attention.h"
#include "native/vlm/cpu_kernels.h"

namespace boq::vlm::cpu {

namespace {

using c10::BFloat16;

constexpr int64_t kRows = 6;          // query rows of a register tile
constexpr int64_t kSerial = 1 << 22;  // multiplications below which waking a thread costs more than it brings

/// Keys, or columns of the values, of a register tile.
template <class V>
constexpr int64_t kPanel = 2 * V::kLanes;

int64_t round_up(int64_t value, int64_t unit) { return (value + unit - 1) / unit * unit; }

template <class T>
using Task = AttentionTask<T>;
using Scratch = AttentionScratch;

/// keys -> panels: [panel][dim][kPanel], zero beyond the last key.
template <class V, class T>
BOQ_INLINE void pack_keys(const Task<T>& task, int64_t count, float* packed) {
  for (int64_t first = 0; first < count; first += kPanel<V>) {
    const auto here = std::min(kPanel<V>, count - first);
    for (int64_t key = 0; key < kPanel<V>; ++key) {
      float* column = packed + key;
      if (key >= here) {
        for (int64_t i = 0; i < task.dim; ++i) column[i * kPanel<V>] = 0;
        continue;
      }
      const T* row = task.k + task.key_rows[static_cast<size_t>(first + key)] * task.k_stride;
      for (int64_t i = 0; i < task.dim; ++i) column[i * kPanel<V>] = static_cast<float>(row[i]);
    }
    packed += task.dim * kPanel<V>;
  }
}

/// values -> panels: [panel][key][kPanel], zero beyond the last column.
template <class V, class T>
BOQ_INLINE void pack_values(const Task<T>& task, int64_t count, float* packed) {
  for (int64_t first = 0; first < task.dim; first += kPanel<V>) {
    const auto here = std::min(kPanel<V>, task.dim - first);
    for (int64_t key = 0; key < count; ++key, packed += kPanel<V>) {
      const T* row = task.v + task.key_rows[static_cast<size_t>(key)] * task.v_stride + first;
      if (here == kPanel<V>) {
        V::store(packed, V::load(row));
        V::store(packed + V::kLanes, V::load(row + V::kLanes));
      } else {
        for (int64_t i = 0; i < kPanel<V>; ++i) packed[i] = i < here ? static_cast<float>(row[i]) : 0.0f;
      }
    }
  }
}

/// tile [kRows, kPanel] = left [kRows, depth] x right [depth, kPanel].
template <class V>
BOQ_INLINE void multiply_tile(const float* left, int64_t left_stride, const float* right, int64_t depth,
                              float* tile, int64_t tile_stride) {
  typename V::Floats sums[kRows][2] = {};
  for (int64_t i = 0; i < depth; ++i) {
    const typename V::Floats first = V::load(right + i * kPanel<V>),
                             second = V::load(right + i * kPanel<V> + V::kLanes);
#pragma GCC unroll 8
    for (int64_t row = 0; row < kRows; ++row) {
      const float factor = left[row * left_stride + i];
      sums[row][0] += first * factor;
      sums[row][1] += second * factor;
    }
  }
#pragma GCC unroll 8
  for (int64_t row = 0; row < kRows; ++row) {
    V::store(tile + row * tile_stride, sums[row][0]);
    V::store(tile + row * tile_stride + V::kLanes, sums[row][1]);
  }
}

/// Softmax of the first `visible` of `padded` scores, not yet divided by the sum, which is returned; zero
/// behind.
template <class V>
BOQ_INLINE float exponentiate(float* scores, int64_t visible, int64_t padded) {
  const auto whole = visible / V::kLanes * V::kLanes;
  typename V::Floats highest = V::load_some(scores + whole, visible - whole, -INFINITY);
  for (int64_t i = 0; i < whole; i += V::kLanes) highest = V::max(highest, V::load(scores + i));
  const float top = V::largest(highest);
  typename V::Floats total{};
  for (int64_t i = 0; i < whole; i += V::kLanes) {
    const typename V::Floats value = V::exp(V::load(scores + i) - top);
    total += value;
    V::store(scores + i, value);
  }
  float sum = V::sum(total);
  for (int64_t i = whole; i < padded; ++i) scores[i] = i < visible ? scores[i] : -INFINITY;
  for (int64_t i = whole; i < padded; i += V::kLanes) {
    float tail[V::kLanes];
    V::store(tail, V::exp(V::load(scores + i) - top));
    for (int64_t j = 0; j < V::kLanes; ++j) {
      scores[i + j] = i + j < visible ? tail[j] : 0.0f;
      sum += scores[i + j];
    }
  }
  return sum;
}

template <class V, class T>
BOQ_INLINE void attend_task(const Task<T>& task, Scratch& scratch) {
  const auto keys = task.keys();
  const auto padded_keys = round_up(keys, kPanel<V>), padded_dim = round_up(task.dim, kPanel<V>);
  scratch.keys.resize(static_cast<size_t>(padded_keys * task.dim));
  scratch.values.resize(static_cast<size_t>(keys * padded_dim));
  scratch.scores.resize(static_cast<size_t>(kRows * (padded_keys + padded_dim)));
  scratch.queries.resize(static_cast<size_t>(kRows * task.dim));
  pack_keys<V>(task, keys, scratch.keys.data());
  pack_values<V>(task, keys, scratch.values.data());
  float* scores = scratch.scores.data();
  float* sums = scores + kRows * padded_keys;
  float* queries = scratch.queries.data();

  for (int64_t head = 0; head < task.group; ++head) {
    for (auto first = task.first_query; first < task.last_query; first += kRows) {
      const auto rows = std::min(kRows, task.last_query - first);
      // Rows beyond the last query are computed along, from zeros, and thrown away.
      for (int64_t row = 0; row < kRows; ++row) {
        const T* source = task.q + (first + row) * task.q_stride + head * task.dim;
        for (int64_t i = 0; i < task.dim; ++i) {
          queries[row * task.dim + i] = row < rows ? static_cast<float>(source[i]) * task.scale : 0.0f;
        }
      }
      const auto needed = task.visible(first + rows - 1);
      const auto padded = round_up(needed, kPanel<V>);
      for (int64_t key = 0; key < padded; key += kPanel<V>) {
        multiply_tile<V>(queries, task.dim, scratch.keys.data() + key * task.dim, task.dim, scores + key,
                         padded_keys);
      }
      float totals[kRows];
      for (int64_t row = 0; row < kRows; ++row) {
        const auto visible = std::min(task.visible(first + row), needed);
        totals[row] = exponentiate<V>(scores + row * padded_keys, visible, padded);
      }
      for (int64_t column = 0; column < task.dim; column += kPanel<V>) {
        multiply_tile<V>(scores, padded_keys, scratch.values.data() + column * keys, needed, sums + column,
                         padded_dim);
      }
      for (int64_t row = 0; row < rows; ++row) {
        T* target = task.out + (first + row) * task.out_stride + head * task.dim;
        const float share = 1.0f / totals[row];
        for (int64_t i = 0; i < task.dim; ++i) target[i] = static_cast<T>(sums[row * padded_dim + i] * share);
      }
    }
  }
}

BOQ_PER_CPU(void run_task(const Task<float>& task, Scratch& scratch), attend_task<V>(task, scratch))
BOQ_PER_CPU(void run_task(const Task<BFloat16>& task, Scratch& scratch), attend_task<V>(task, scratch))

/// A block of queries of a segment, for one key head.
struct Block {
  size_t segment;
  int64_t kv_head, first_query, last_query;
};

/// Packing the keys costs as much as a few dozen queries, so blocks are as large as leaves work for all
/// threads.
std::vector<Block> plan_blocks(const Segments& segments, int64_t kv_heads, int64_t group) {
  constexpr int64_t kFewestRows = 192;
  int64_t total = 0;
  for (size_t s = 0; s < segments.size(); ++s) total += segments.length(s) * kv_heads;
  const auto share = total / (8 * at::get_num_threads());
  std::vector<Block> blocks;
  for (size_t s = 0; s < segments.size(); ++s) {
    const auto length = segments.length(s);
    const auto wanted = std::max(share, (kFewestRows + group - 1) / group);
    const auto parts = std::max<int64_t>(1, length / wanted);
    const auto size = round_up((length + parts - 1) / parts, kRows);
    for (int64_t kv_head = 0; kv_head < kv_heads; ++kv_head) {
      // The last queries of a causal segment see most: they come first, so that threads end together.
      for (auto first = (length - 1) / size * size; first >= 0; first -= size) {
        blocks.push_back({s, kv_head, first, std::min(first + size, length)});
      }
    }
  }
  return blocks;
}

/// Multiplications of all queries with all keys that they may see, causal or not.
int64_t count_products(const Segments& segments, int64_t heads, int64_t dim) {
  int64_t pairs = 0;
  for (size_t s = 0; s < segments.size(); ++s) {
    int64_t keys = segments.length(s);
    if (!segments.prefixes.empty()) {
      for (const auto& range : segments.prefixes[s]) keys += range.end - range.begin;
    }
    pairs += segments.length(s) * keys;
  }
  return pairs * heads * dim;
}

template <class T>
void attend_typed(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const Segments& segments,
                  bool is_causal, at::Tensor& out) {
  const auto kv_heads = k.size(1), group = q.size(1) / kv_heads, dim = q.size(2);
  const auto blocks = plan_blocks(segments, kv_heads, group);
  const bool has_bf16 = has_cpu_bf16() && dim % 2 == 0;
  const auto set_up = [&](const Block& block, Task<T>& task) {
    const auto row = segments.offsets[block.segment], length = segments.length(block.segment);
    task.q = q.const_data_ptr<T>() + row * q.stride(0) + block.kv_head * group * dim;
    task.k = k.const_data_ptr<T>() + block.kv_head * dim;
    task.v = v.const_data_ptr<T>() + block.kv_head * dim;
    task.out = out.data_ptr<T>() + row * out.stride(0) + block.kv_head * group * dim;
    task.q_stride = q.stride(0);
    task.k_stride = k.stride(0);
    task.v_stride = v.stride(0);
    task.out_stride = out.stride(0);
    task.dim = dim;
    task.group = group;
    task.first_query = block.first_query;
    task.last_query = block.last_query;
    task.is_causal = is_causal;
    task.scale = 1.0f / std::sqrt(static_cast<float>(dim));
    task.key_rows.clear();
    const auto add_rows = [&](int64_t begin, int64_t end) {
      for (auto i = begin; i < end; ++i) task.key_rows.push_back(i);
    };
    if (!segments.prefixes.empty()) {
      for (const auto& range : segments.prefixes[block.segment]) add_rows(range.begin, range.end);
    }
    task.prefix = task.keys();
    const auto own = row + segments.key_shift;
    add_rows(own, own + (is_causal ? block.last_query : length));
  };
  // Threads take the next blocks when they are done, some short ones at a time.
  const auto count = static_cast<int64_t>(blocks.size());
  const int64_t threads = count_products(segments, q.size(1), dim) < kSerial ? 1 : at::get_num_threads();
  const auto at_once = std::clamp<int64_t>(count / (16 * threads), 1, 16);
  std::atomic<int64_t> next{0};
  at::parallel_for(0, std::min(threads, count), 1, [&](int64_t, int64_t) {
    Scratch scratch;
    Task<T> task;
    for (auto first = next.fetch_add(at_once); first < count; first = next.fetch_add(at_once)) {
      for (auto i = first; i < std::min(first + at_once, count); ++i) {
        set_up(blocks[static_cast<size_t>(i)], task);
        if constexpr (std::is_same_v<T, BFloat16>) {
          if (has_bf16) {
            attend_bf16(task, scratch);
            continue;
          }
        }
        run_task(task, scratch);
      }
    }
  });
}

}  // namespace

at::Tensor attend(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const Segments& segments,
                  bool is_causal) {
  const auto dim = q.size(2);
  for (const auto& x : {q, k, v}) {
    BOQ_CHECK(x.stride(2) == 1 && x.stride(1) == dim, ErrorCode::kInternal, "heads must be contiguous");
    // The kernels gather with 32-bit offsets.
    BOQ_CHECK(x.size(0) * x.stride(0) < int64_t{1} << 32, ErrorCode::kInternal, "too many rows at once");
  }
  auto out = at::empty({q.size(0), q.size(1) * dim}, q.options());
  if (q.scalar_type() == at::kFloat) {
    attend_typed<float>(q, k, v, segments, is_causal, out);
  } else {
    attend_typed<BFloat16>(q, k, v, segments, is_causal, out);
  }
  return out;
}

}  // namespace boq::vlm::cpu
