// The little vector arithmetic our CPU kernels need, in terms of the compiler's vector types: sixteen floats
// that become one AVX-512 register, two AVX or four SSE ones. BOQ_CPU_DISPATCH compiles a function for each
// of these and picks one when the program starts; what it calls must be inlined into it (BOQ_INLINE).
#pragma once

#include <c10/util/BFloat16.h>

#include <bit>
#include <cstdint>
#include <cstring>

// Vectors are passed between inlined functions only, so their calling convention does not matter.
#pragma GCC diagnostic ignored "-Wpsabi"

#define BOQ_INLINE inline __attribute__((always_inline))
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && !defined(__SANITIZE_ADDRESS__)
#define BOQ_CPU_DISPATCH __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define BOQ_CPU_DISPATCH
#endif

namespace boq::vlm::simd {

constexpr int64_t kLanes = 16;
typedef float Floats __attribute__((vector_size(64)));
typedef int32_t Ints __attribute__((vector_size(64)));
typedef uint32_t Bits __attribute__((vector_size(64)));
typedef uint16_t Halves __attribute__((vector_size(32)));

BOQ_INLINE Floats splat(float value) { return Floats{} + value; }

BOQ_INLINE Floats load(const float* source) {
  Floats values;
  std::memcpy(&values, source, sizeof values);
  return values;
}

BOQ_INLINE Floats load(const c10::BFloat16* source) {
  Halves halves;
  std::memcpy(&halves, source, sizeof halves);
  const Bits bits = __builtin_convertvector(halves, Bits) << 16;
  return reinterpret_cast<Floats>(bits);
}

BOQ_INLINE void store(float* target, Floats values) { std::memcpy(target, &values, sizeof values); }

/// Rounds to nearest, ties to even; a NaN stays one.
BOQ_INLINE void store(c10::BFloat16* target, Floats values) {
  const Bits bits = reinterpret_cast<Bits>(values);
  const Bits rounded = (bits + 0x7fff + ((bits >> 16) & 1)) >> 16;
  const Bits is_nan = reinterpret_cast<Bits>((bits & 0x7fffffff) > 0x7f800000);
  const Bits result = (rounded & ~is_nan) | (is_nan & 0x7fc0);
  const Halves halves = __builtin_convertvector(result, Halves);
  std::memcpy(target, &halves, sizeof halves);
}

/// What storing as T and loading again gives.
template <class T>
BOQ_INLINE Floats rounded(Floats values) {
  if constexpr (std::is_same_v<T, float>) {
    return values;
  } else {
    T buffer[kLanes];
    store(buffer, values);
    return load(buffer);
  }
}

/// The first `count` < 16 values, the rest `fill`.
template <class T>
BOQ_INLINE Floats load_some(const T* source, int64_t count, float fill = 0) {
  float buffer[kLanes];
  for (int64_t i = 0; i < kLanes; ++i) buffer[i] = i < count ? static_cast<float>(source[i]) : fill;
  return load(buffer);
}

template <class T>
BOQ_INLINE void store_some(T* target, Floats values, int64_t count) {
  T buffer[kLanes];
  store(buffer, values);
  for (int64_t i = 0; i < count; ++i) target[i] = buffer[i];
}

BOQ_INLINE Floats max(Floats a, Floats b) { return a > b ? a : b; }
BOQ_INLINE Floats min(Floats a, Floats b) { return a < b ? a : b; }

BOQ_INLINE float sum(Floats values) {
  float total = 0;
  for (int64_t i = 0; i < kLanes; ++i) total += values[i];
  return total;
}

BOQ_INLINE float largest(Floats values) {
  float result = values[0];
  for (int64_t i = 1; i < kLanes; ++i) result = values[i] > result ? values[i] : result;
  return result;
}

/// e^x within two units in the last place for x in [-87, 88]; clamped outside.
BOQ_INLINE Floats exp(Floats x) {
  x = min(max(x, splat(-87.0f)), splat(88.0f));
  // x = n ln 2 + r with |r| <= ln 2 / 2; adding and subtracting 1.5 * 2^23 rounds to an integer.
  const Floats magic = splat(12582912.0f);
  const Floats shifted = x * 1.44269504088896341f + magic;
  const Floats n = shifted - magic;
  const Floats r = (x - n * 0.693359375f) + n * 2.12194440e-4f;
  Floats p = splat(1.9875691500e-4f);
  p = p * r + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  p = p * r * r + r + 1.0f;
  const Ints exponent = (__builtin_convertvector(n, Ints) + 127) << 23;
  return p * reinterpret_cast<Floats>(exponent);
}

}  // namespace boq::vlm::simd
