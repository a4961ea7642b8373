// Attention with the AVX512-BF16 instructions, four times the arithmetic of float32. Keys are packed as pairs
// of neighbouring dimensions, values as pairs of neighbouring keys: one instruction multiplies 32 of each and
// adds them up in 16 floats.
#include "native/core/simd.h"
#include "native/vlm/cpu_attention.h"

#if defined(__x86_64__) && defined(__GNUC__)
#include <immintrin.h>

#include <algorithm>
#include <cmath>

#define BOQ_BF16 __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,avx512bf16,fma,avx2")))
#define BOQ_BF16_INLINE inline BOQ_BF16 __attribute__((always_inline))

namespace boq::vlm::cpu {

namespace {

using c10::BFloat16;
using V = simd::Lanes<16>;
using Floats = V::Floats;
constexpr int64_t kLanes = V::kLanes;
using Task = AttentionTask<BFloat16>;

constexpr int64_t kRows = 6;            // query rows of a register tile
constexpr int64_t kTiles = 4;           // tiles that meet a panel of keys while it is in the first cache
constexpr int64_t kPanel = 4 * kLanes;  // keys of a register tile
constexpr int64_t kMaxVectors = 4;      // of value columns in a register tile

int64_t round_up(int64_t value, int64_t unit) { return (value + unit - 1) / unit * unit; }

/// [panel][dim / 2][64 keys] of pairs, zero beyond the last key.
BOQ_BF16 void pack_keys(const Task& task, uint32_t* packed) {
  const auto* base = reinterpret_cast<const int32_t*>(task.k);
  const auto pairs = task.dim / 2;
  for (int64_t first = 0; first < task.keys(); first += kLanes) {
    const auto count = std::min(kLanes, task.keys() - first);
    const auto mask = static_cast<__mmask16>((1u << count) - 1);
    alignas(64) int32_t offsets[kLanes] = {};
    for (int64_t i = 0; i < count; ++i) {
      offsets[i] = static_cast<int32_t>(task.key_rows[static_cast<size_t>(first + i)] * task.k_stride / 2);
    }
    const __m512i index = _mm512_load_si512(offsets);
    uint32_t* target = packed + first / kPanel * kPanel * pairs + first % kPanel;
    for (int64_t i = 0; i < pairs; ++i) {
      const __m512i keys = _mm512_mask_i32gather_epi32(_mm512_setzero_si512(), mask, index, base + i, 4);
      _mm512_storeu_si512(target + i * kPanel, keys);
    }
  }
  for (auto key = round_up(task.keys(), kLanes); key < round_up(task.keys(), kPanel); key += kLanes) {
    uint32_t* target = packed + key / kPanel * kPanel * pairs + key % kPanel;
    for (int64_t i = 0; i < pairs; ++i) _mm512_storeu_si512(target + i * kPanel, _mm512_setzero_si512());
  }
}

/// Vectors of 16 columns that one tile of the values takes, beginning at `vector`: near equal parts of at
/// most four.
int64_t part_size(int64_t vectors, int64_t vector) {
  const auto parts = (vectors + kMaxVectors - 1) / kMaxVectors;
  const auto large = vectors - (vectors / parts) * parts;  // that many parts have one more
  const auto size = vectors / parts;
  return vector < large * (size + 1) ? size + 1 : size;
}

BOQ_BF16_INLINE __m512i widen(const BFloat16* row, __mmask16 mask) {
  return _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(mask, row));
}

/// [part][key / 2][columns of the part] of pairs, zero beyond the last key and column.
BOQ_BF16 void pack_values(const Task& task, uint32_t* packed) {
  const auto vectors = round_up(task.dim, kLanes) / kLanes, keys = task.keys();
  for (int64_t vector = 0; vector < vectors;) {
    const auto size = part_size(vectors, vector);
    for (int64_t key = 0; key < keys; key += 2) {
      const BFloat16* first = task.v + task.key_rows[static_cast<size_t>(key)] * task.v_stride;
      const bool has_second = key + 1 < keys;
      const BFloat16* second =
          has_second ? task.v + task.key_rows[static_cast<size_t>(key + 1)] * task.v_stride : first;
      for (int64_t i = 0; i < size; ++i, packed += kLanes) {
        const auto column = (vector + i) * kLanes;
        const auto left = std::min(kLanes, task.dim - column);
        const auto mask = static_cast<__mmask16>((1u << left) - 1);
        const __m512i low = widen(first + column, mask);
        const __m512i high = has_second ? widen(second + column, mask) : _mm512_setzero_si512();
        _mm512_storeu_si512(packed, _mm512_or_si512(low, _mm512_slli_epi32(high, 16)));
      }
    }
    vector += size;
  }
}

/// tile [kRows, 16 * kVectors] = left [kRows, 2 * pairs] x right [pairs, 16 * kVectors] of pairs.
template <int kVectors>
BOQ_BF16_INLINE void multiply_tile(const BFloat16* left, int64_t left_stride, const uint32_t* right,
                                   int64_t pairs, float* tile, int64_t tile_stride) {
  __m512 sums[kRows][kVectors];
#pragma GCC unroll 8
  for (int64_t row = 0; row < kRows; ++row) {
#pragma GCC unroll 4
    for (int i = 0; i < kVectors; ++i) sums[row][i] = _mm512_setzero_ps();
  }
  for (int64_t pair = 0; pair < pairs; ++pair, right += kVectors * kLanes) {
    __m512bh factors[kVectors];
#pragma GCC unroll 4
    for (int i = 0; i < kVectors; ++i) factors[i] = (__m512bh)_mm512_loadu_si512(right + i * kLanes);
#pragma GCC unroll 8
    for (int64_t row = 0; row < kRows; ++row) {
      int32_t both;
      std::memcpy(&both, left + row * left_stride + 2 * pair, sizeof both);
      const auto factor = (__m512bh)_mm512_set1_epi32(both);
#pragma GCC unroll 4
      for (int i = 0; i < kVectors; ++i) sums[row][i] = _mm512_dpbf16_ps(sums[row][i], factor, factors[i]);
    }
  }
#pragma GCC unroll 8
  for (int64_t row = 0; row < kRows; ++row) {
#pragma GCC unroll 4
    for (int i = 0; i < kVectors; ++i) _mm512_storeu_ps(tile + row * tile_stride + i * kLanes, sums[row][i]);
  }
}

/// weights = e^(scale * (score - highest)) for the first `visible` scores, zero up to `padded`. Returns their
/// sum.
BOQ_BF16_INLINE float exponentiate(const float* scores, int64_t visible, int64_t padded, float scale,
                                   BFloat16* weights) {
  const auto whole = visible / kLanes * kLanes;
  const auto tail = static_cast<__mmask16>((1u << (visible - whole)) - 1);
  __m512 highest = _mm512_mask_loadu_ps(_mm512_set1_ps(-INFINITY), tail, scores + whole);
  for (int64_t i = 0; i < whole; i += kLanes) highest = _mm512_max_ps(highest, _mm512_loadu_ps(scores + i));
  const Floats top = V::splat(_mm512_reduce_max_ps(highest));
  Floats total{};
  for (int64_t i = 0; i < whole; i += kLanes) {
    const Floats value = V::exp((V::load(scores + i) - top) * scale);
    total += value;
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(weights + i), (__m256i)_mm512_cvtneps_pbh((__m512)value));
  }
  for (auto i = whole; i < padded; i += kLanes) {
    const auto mask = i == whole ? tail : static_cast<__mmask16>(0);
    const Floats scores_here = (Floats)_mm512_mask_loadu_ps((__m512)top, mask, scores + i);
    const auto value = (Floats)_mm512_maskz_mov_ps(mask, (__m512)V::exp((scores_here - top) * scale));
    total += value;
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(weights + i), (__m256i)_mm512_cvtneps_pbh((__m512)value));
  }
  return V::sum(total);
}

/// sums [kRows, dim] = weights [kRows, 2 * pairs] x all packed values.
BOQ_BF16_INLINE void weigh_values(const BFloat16* weights, int64_t stride, const uint32_t* packed,
                                  int64_t pairs, int64_t packed_pairs, int64_t vectors, float* sums) {
  for (int64_t vector = 0; vector < vectors;) {
    const auto size = part_size(vectors, vector);
    float* tile = sums + vector * kLanes;
    const auto tile_stride = vectors * kLanes;
    if (size == 4) multiply_tile<4>(weights, stride, packed, pairs, tile, tile_stride);
    if (size == 3) multiply_tile<3>(weights, stride, packed, pairs, tile, tile_stride);
    if (size == 2) multiply_tile<2>(weights, stride, packed, pairs, tile, tile_stride);
    if (size == 1) multiply_tile<1>(weights, stride, packed, pairs, tile, tile_stride);
    packed += packed_pairs * size * kLanes;
    vector += size;
  }
}

}  // namespace

BOQ_BF16 void attend_bf16(const Task& task, AttentionScratch& scratch) {
  constexpr auto kBlock = kRows * kTiles;
  const auto dim = task.dim, pairs = dim / 2, keys = task.keys();
  const auto padded_keys = round_up(keys, kPanel), key_pairs = (keys + 1) / 2;
  const auto vectors = round_up(dim, kLanes) / kLanes;
  scratch.key_pairs.resize(static_cast<size_t>(padded_keys * pairs));
  scratch.value_pairs.resize(static_cast<size_t>(key_pairs * vectors * kLanes));
  scratch.scores.resize(static_cast<size_t>(kBlock * padded_keys));
  scratch.weights.resize(static_cast<size_t>(kBlock * padded_keys));
  scratch.query_rows.resize(static_cast<size_t>(kBlock * dim));
  scratch.values.resize(static_cast<size_t>(kRows * vectors * kLanes));
  pack_keys(task, scratch.key_pairs.data());
  pack_values(task, scratch.value_pairs.data());
  float* scores = scratch.scores.data();
  BFloat16* weights = scratch.weights.data();
  BFloat16* queries = scratch.query_rows.data();
  float* sums = scratch.values.data();

  for (int64_t head = 0; head < task.group; ++head) {
    for (auto first = task.first_query; first < task.last_query; first += kBlock) {
      const auto rows = std::min(kBlock, task.last_query - first);
      for (int64_t row = 0; row < rows; ++row) {
        std::memcpy(queries + row * dim, task.q + (first + row) * task.q_stride + head * dim,
                    static_cast<size_t>(dim) * sizeof(BFloat16));
      }
      // Rows beyond the last query are computed along and thrown away.
      const auto tiles = (rows + kRows - 1) / kRows;
      const auto needed = task.visible(first + rows - 1), padded = round_up(needed, kPanel);
      for (int64_t key = 0; key < padded; key += kPanel) {
        for (int64_t tile = 0; tile < tiles; ++tile) {
          multiply_tile<4>(queries + tile * kRows * dim, dim, scratch.key_pairs.data() + key * pairs, pairs,
                           scores + tile * kRows * padded_keys + key, padded_keys);
        }
      }
      float totals[kBlock];
      for (int64_t row = 0; row < rows; ++row) {
        const auto at = row * padded_keys;
        totals[row] = exponentiate(scores + at, task.visible(first + row), padded, task.scale, weights + at);
      }
      for (int64_t tile = 0; tile < tiles; ++tile) {
        weigh_values(weights + tile * kRows * padded_keys, padded_keys, scratch.value_pairs.data(),
                     (needed + 1) / 2, key_pairs, vectors, sums);
        for (auto row = tile * kRows; row < std::min(rows, (tile + 1) * kRows); ++row) {
          BFloat16* target = task.out + (first + row) * task.out_stride + head * dim;
          const float share = 1.0f / totals[row];
          const float* source = sums + (row - tile * kRows) * vectors * kLanes;
          for (int64_t i = 0; i < dim; i += kLanes) {
            const auto left = std::min(kLanes, dim - i);
            const __m512 scaled = _mm512_mul_ps(_mm512_loadu_ps(source + i), _mm512_set1_ps(share));
            _mm256_mask_storeu_epi16(target + i, static_cast<__mmask16>((1u << left) - 1),
                                     (__m256i)_mm512_cvtneps_pbh(scaled));
          }
        }
      }
    }
  }
}

}  // namespace boq::vlm::cpu

#else

#include "native/core/error.h"

namespace boq::vlm::cpu {

void attend_bf16(const AttentionTask<c10::BFloat16>&, AttentionScratch&) {
  fail(ErrorCode::kInternal, "this build has no AVX512-BF16 kernels");
}

}  // namespace boq::vlm::cpu

#endif
