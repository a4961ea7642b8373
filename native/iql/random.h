// Counter-based random numbers: every draw is a hash of what it is for, so nothing needs to be saved to
// resume and nothing depends on the order of calls.
#pragma once

#include <cstdint>

namespace boq::iql {

/// The finaliser of SplitMix64 (Steele, Lea, Flood 2014): a bijection that mixes every bit into every bit.
constexpr uint64_t mix_bits(uint64_t x) {
  x += 0x9e3779b97f4a7c15ull;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
  return x ^ (x >> 31);
}

/// What a draw is for. The values are part of the definition of a run: do not renumber.
enum class Draw : uint64_t { kInit = 1, kSample = 2, kDropout = 3, kShuffle = 4, kMask = 5, kPair = 6 };

/// The key of one kind of draw within a run, refined by up to two numbers (network and head, step and
/// network, ...).
constexpr uint64_t draw_key(uint64_t seed, Draw draw, uint64_t a = 0, uint64_t b = 0) {
  return mix_bits(mix_bits(mix_bits(mix_bits(seed) ^ static_cast<uint64_t>(draw)) ^ a) ^ b);
}

/// 64 random bits: draw number `i` under `key`.
constexpr uint64_t draw_bits(uint64_t key, uint64_t i) { return mix_bits(key ^ mix_bits(i)); }

/// Uniform in [0, 1), 53 bits.
constexpr double draw_unit(uint64_t key, uint64_t i) {
  return static_cast<double>(draw_bits(key, i) >> 11) * 0x1p-53;
}

/// Uniform in [0, n): the high half of a 128-bit product (bias below n / 2^64).
inline int64_t draw_index(uint64_t key, uint64_t i, int64_t n) {
  return static_cast<int64_t>(
      (static_cast<unsigned __int128>(draw_bits(key, i)) * static_cast<uint64_t>(n)) >> 64);
}

}  // namespace boq::iql
