// The little vector arithmetic our CPU kernels need, in terms of the compiler's vector types. A kernel is
// written once for Lanes<L>, vectors of L floats, and BOQ_PER_CPU compiles it for each register width:
// sixteen floats with AVX-512, eight with AVX2, four otherwise (SSE2, NEON). Wider vectors than the registers
// would be correct, but GCC keeps those in memory. What a kernel calls must be inlined into it (BOQ_INLINE).
#pragma once

#include <c10/util/BFloat16.h>

#include <cstdint>
#include <cstring>
#include <type_traits>

// Vectors are passed between inlined functions only, so their calling convention does not matter.
#pragma GCC diagnostic ignored "-Wpsabi"

#define BOQ_INLINE inline __attribute__((always_inline))

/// BOQ_VECTORISED before a function of plain loops, which the compiler makes vectors of by itself, compiles
/// it for each of these machines.
///
/// BOQ_PER_CPU(void f(int n), body<V>(n)) defines f, which calls the body with V = Lanes<L> of the machine it
/// runs on. The versions of one f have one name; the program picks among them when it starts.
#define BOQ_FOR_LANES(lanes, declaration, ...) \
  declaration {                                \
    using V = boq::simd::Lanes<lanes>;         \
    __VA_ARGS__;                               \
  }
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && !defined(__SANITIZE_ADDRESS__)
#define BOQ_VECTORISED __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#define BOQ_PER_CPU(declaration, ...)                                                      \
  __attribute__((target("arch=x86-64-v4"))) BOQ_FOR_LANES(16, declaration, __VA_ARGS__)    \
      __attribute__((target("arch=x86-64-v3"))) BOQ_FOR_LANES(8, declaration, __VA_ARGS__) \
          __attribute__((target("default"))) BOQ_FOR_LANES(4, declaration, __VA_ARGS__)
#else
#define BOQ_VECTORISED
#define BOQ_PER_CPU(declaration, ...) BOQ_FOR_LANES(4, declaration, __VA_ARGS__)
#endif

namespace boq::simd {

/// The compiler's types for one width. It takes no conversions of vectors whose width is a template's
/// parameter, hence a specialisation for each.
template <int kLanes>
struct Registers;

#define BOQ_REGISTERS(lanes)                                                                 \
  template <>                                                                                \
  struct Registers<lanes> {                                                                  \
    typedef float Floats __attribute__((vector_size(4 * (lanes))));                          \
    typedef int32_t Ints __attribute__((vector_size(4 * (lanes))));                          \
    typedef uint32_t Bits __attribute__((vector_size(4 * (lanes))));                         \
    typedef int16_t Shorts __attribute__((vector_size(2 * (lanes))));                        \
    typedef uint16_t Halves __attribute__((vector_size(2 * (lanes))));                       \
    static BOQ_INLINE Ints to_ints(Floats x) { return __builtin_convertvector(x, Ints); }    \
    static BOQ_INLINE Bits widened(Halves x) { return __builtin_convertvector(x, Bits); }    \
    static BOQ_INLINE Halves narrowed(Bits x) { return __builtin_convertvector(x, Halves); } \
    static BOQ_INLINE Floats to_floats(Shorts x) {                                           \
      return __builtin_convertvector(__builtin_convertvector(x, Ints), Floats);              \
    }                                                                                        \
  };
BOQ_REGISTERS(4)
BOQ_REGISTERS(8)
BOQ_REGISTERS(16)
#undef BOQ_REGISTERS

/// Vectors of L floats and what can be done with them.
template <int L>
struct Lanes {
  using R = Registers<L>;
  using Floats = typename R::Floats;
  using Ints = typename R::Ints;
  using Bits = typename R::Bits;
  static constexpr int64_t kLanes = L;

  static BOQ_INLINE Floats splat(float value) { return Floats{} + value; }

  static BOQ_INLINE Floats load(const float* source) { return copied<Floats>(source); }
  static BOQ_INLINE Floats load(const int16_t* source) {
    return R::to_floats(copied<typename R::Shorts>(source));
  }
  static BOQ_INLINE Floats load(const c10::BFloat16* source) {
    const Bits bits = R::widened(copied<typename R::Halves>(source)) << 16;
    return reinterpret_cast<Floats>(bits);
  }

  static BOQ_INLINE void store(float* target, Floats values) { std::memcpy(target, &values, sizeof values); }

  /// Rounds to nearest, ties to even; a NaN stays one.
  static BOQ_INLINE void store(c10::BFloat16* target, Floats values) {
    const Bits bits = reinterpret_cast<Bits>(values);
    const Bits rounded = (bits + 0x7fff + ((bits >> 16) & 1)) >> 16;
    const Bits is_nan = reinterpret_cast<Bits>((bits & 0x7fffffff) > 0x7f800000);
    const auto halves = R::narrowed((rounded & ~is_nan) | (is_nan & 0x7fc0));
    std::memcpy(target, &halves, sizeof halves);
  }

  /// What storing as T and loading again gives.
  template <class T>
  static BOQ_INLINE Floats rounded(Floats values) {
    if constexpr (std::is_same_v<T, float>) {
      return values;
    } else {
      T buffer[L];
      store(buffer, values);
      return load(buffer);
    }
  }

  /// The first `count` < L values, the rest `fill`.
  template <class T>
  static BOQ_INLINE Floats load_some(const T* source, int64_t count, float fill = 0) {
    float buffer[L];
    for (int64_t i = 0; i < L; ++i) buffer[i] = i < count ? static_cast<float>(source[i]) : fill;
    return load(buffer);
  }

  template <class T>
  static BOQ_INLINE void store_some(T* target, Floats values, int64_t count) {
    T buffer[L];
    store(buffer, values);
    for (int64_t i = 0; i < count; ++i) target[i] = buffer[i];
  }

  static BOQ_INLINE Floats max(Floats a, Floats b) { return a > b ? a : b; }
  static BOQ_INLINE Floats min(Floats a, Floats b) { return a < b ? a : b; }

  static BOQ_INLINE float sum(Floats values) {
    float total = 0;
    for (int64_t i = 0; i < L; ++i) total += values[i];
    return total;
  }

  static BOQ_INLINE float largest(Floats values) {
    float result = values[0];
    for (int64_t i = 1; i < L; ++i) result = values[i] > result ? values[i] : result;
    return result;
  }

  /// e^x within two units in the last place for x in [-87, 88]; clamped outside.
  static BOQ_INLINE Floats exp(Floats x) {
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
    const Ints exponent = (R::to_ints(n) + 127) << 23;
    return p * reinterpret_cast<Floats>(exponent);
  }

 private:
  template <class Vector, class T>
  static BOQ_INLINE Vector copied(const T* source) {
    Vector values;
    std::memcpy(&values, source, sizeof values);
    return values;
  }
};

}  // namespace boq::simd
