#include "native/iql/kernels.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include "native/core/simd.h"
#include "native/iql/random.h"

namespace boq::iql {
namespace {

constexpr int64_t kBlock = 1 << 15;  // elements that one task works on

struct Bf16 {
  uint16_t bits;
};

inline float load(const float& x) { return x; }
inline float load(const Bf16& x) { return std::bit_cast<float>(static_cast<uint32_t>(x.bits) << 16); }
inline float load(const c10::Half& x) { return static_cast<float>(x); }
inline void store(float& to, float x) { to = x; }
inline void store(Bf16& to,
                  float x) {  // to nearest, ties to even; a NaN stays one (gradients are checked before)
  const auto bits = std::bit_cast<uint32_t>(x);
  to.bits = static_cast<uint16_t>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

// A 32-bit hash of good avalanche (Wellons' search, "lowbias32"): cheap enough to draw one number an element.
inline uint32_t hash32(uint32_t x) {
  x ^= x >> 16;
  x *= 0x21f0aaadu;
  x ^= x >> 15;
  x *= 0x735a2d97u;
  return x ^ (x >> 15);
}

struct Keep {
  uint32_t key;
  uint32_t threshold;  // an element whose hash is below is dropped
  float scale;
};

// `first`: number of the row's first element, counted within the head.
template <class T>
BOQ_INLINE void activate_row(T* h, const float* bias, int64_t n, uint32_t first, Keep keep) {
  for (int64_t j = 0; j < n; ++j) {
    const float z = load(h[j]) + bias[j];
    const bool kept = hash32((first + static_cast<uint32_t>(j)) * 0x9e3779b9u ^ keep.key) >= keep.threshold;
    store(h[j], z > 0 && kept ? z * keep.scale : (std::isnan(z) ? z : 0.0f));
  }
}

template <class T>
BOQ_INLINE void bias_row(T* h, const float* bias, int64_t n) {
  for (int64_t j = 0; j < n; ++j) store(h[j], load(h[j]) + bias[j]);
}

template <class T>
BOQ_INLINE void gate_row(T* grad, const T* h, int64_t n, float scale) {
  for (int64_t j = 0; j < n; ++j) store(grad[j], load(h[j]) > 0 ? load(grad[j]) * scale : 0.0f);
}

template <class T>
BOQ_INLINE void add_row(float* sum, const T* row, int64_t n) {
  for (int64_t j = 0; j < n; ++j) sum[j] += load(row[j]);
}

BOQ_VECTORISED void activate(float* h, const float* bias, int64_t n, uint32_t first, Keep keep) {
  activate_row(h, bias, n, first, keep);
}
BOQ_VECTORISED void activate(Bf16* h, const float* bias, int64_t n, uint32_t first, Keep keep) {
  activate_row(h, bias, n, first, keep);
}
BOQ_VECTORISED void shift(float* h, const float* bias, int64_t n) { bias_row(h, bias, n); }
BOQ_VECTORISED void shift(Bf16* h, const float* bias, int64_t n) { bias_row(h, bias, n); }
BOQ_VECTORISED void gate(float* grad, const float* h, int64_t n, float scale) { gate_row(grad, h, n, scale); }
BOQ_VECTORISED void gate(Bf16* grad, const Bf16* h, int64_t n, float scale) { gate_row(grad, h, n, scale); }
BOQ_VECTORISED void add(float* sum, const float* row, int64_t n) { add_row(sum, row, n); }
BOQ_VECTORISED void add(float* sum, const Bf16* row, int64_t n) { add_row(sum, row, n); }

template <class T>
BOQ_INLINE double squares_of(const T* x, int64_t n) {
  double sums[8] = {};
  int64_t i = 0;
  for (; i + 8 <= n; i += 8) {
    for (int64_t j = 0; j < 8; ++j) sums[j] += static_cast<double>(load(x[i + j])) * load(x[i + j]);
  }
  for (; i < n; ++i) sums[0] += static_cast<double>(load(x[i])) * load(x[i]);
  return ((sums[0] + sums[1]) + (sums[2] + sums[3])) + ((sums[4] + sums[5]) + (sums[6] + sums[7]));
}
BOQ_VECTORISED double squares(const float* x, int64_t n) { return squares_of(x, n); }
BOQ_VECTORISED double squares(const Bf16* x, int64_t n) { return squares_of(x, n); }

// The constants of a step, each rounded once: 1 - beta2 in float32 would be off by five parts in 100,000.
struct AdamFactors {
  float inverse_scale, decay, shrink, beta1, rest1, beta2, rest2, step_size, inverse_root, epsilon;
};

template <class T>
BOQ_INLINE void adam_block(float* __restrict p, const T* __restrict g, float* __restrict m,
                           float* __restrict v, Bf16* half, int64_t n, AdamFactors f) {
  for (int64_t i = 0; i < n; ++i) {
    const float gradient = load(g[i]) * f.inverse_scale + f.decay * p[i];
    m[i] = f.beta1 * m[i] + f.rest1 * gradient;
    v[i] = f.beta2 * v[i] + f.rest2 * gradient * gradient;
    p[i] = f.shrink * p[i] - f.step_size * m[i] / (std::sqrt(v[i]) * f.inverse_root + f.epsilon);
  }
  if (half != nullptr) {
    for (int64_t i = 0; i < n; ++i) store(half[i], p[i]);
  }
}
BOQ_VECTORISED void adam(float* p, const float* g, float* m, float* v, Bf16* half, int64_t n, AdamFactors f) {
  adam_block(p, g, m, v, half, n, f);
}
BOQ_VECTORISED void adam(float* p, const Bf16* g, float* m, float* v, Bf16* half, int64_t n, AdamFactors f) {
  adam_block(p, g, m, v, half, n, f);
}

template <class From, class To>
BOQ_INLINE void convert_row(const From* from, To* to, int64_t n, RowScaling s) {
  if (s.mean == nullptr) {
    for (int64_t j = 0; j < n; ++j) store(to[j], load(from[j]));
    return;
  }
  const float limit = s.clip > 0 ? s.clip : std::numeric_limits<float>::infinity();
  for (int64_t j = 0; j < n; ++j) {
    const float x = (load(from[j]) - s.mean[j]) / s.std[j];
    store(to[j], x > limit ? limit : (x < -limit ? -limit : x));  // a NaN passes, and is found in the loss
  }
}

#define BOQ_CONVERT(From, To)                                                      \
  BOQ_VECTORISED void convert(const From* from, To* to, int64_t n, RowScaling s) { \
    convert_row(from, to, n, s);                                                   \
  }
BOQ_CONVERT(float, float)
BOQ_CONVERT(float, Bf16)
BOQ_CONVERT(Bf16, float)
BOQ_CONVERT(Bf16, Bf16)
BOQ_CONVERT(c10::Half, float)
BOQ_CONVERT(c10::Half, Bf16)
#undef BOQ_CONVERT

// Calls f with a pointer of the type that `dtype` stands for.
template <class F>
void with_source(const void* from, at::ScalarType dtype, F&& f) {
  if (dtype == at::kFloat)
    f(static_cast<const float*>(from));
  else if (dtype == at::kBFloat16)
    f(static_cast<const Bf16*>(from));
  else
    f(static_cast<const c10::Half*>(from));
}

// Calls f with the element pointer type of the tensor.
template <class F>
void with_elements(const at::Tensor& tensor, F&& f) {
  if (tensor.scalar_type() == at::kFloat)
    f(static_cast<float*>(tensor.data_ptr()));
  else
    f(static_cast<Bf16*>(tensor.data_ptr()));
}

// Calls f(head, row in head, row pointer) for every row of h [K, B, n].
template <class T, class F>
void for_rows(T* data, int64_t heads, int64_t rows, int64_t n, F&& f) {
  at::parallel_for(0, heads * rows, std::max<int64_t>(1, kBlock / n), [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) f(r / rows, r % rows, data + r * n);
  });
}

}  // namespace

void bias_relu_dropout_(at::Tensor& h, const at::Tensor& bias, const DropoutMask& mask) {
  const int64_t heads = h.size(0), rows = h.size(1), n = h.size(2);
  if (!h.is_cpu()) {
    h.add_(bias.unsqueeze(1)).relu_();
    if (mask.rate > 0) h.copy_(std::get<0>(at::native_dropout(h, mask.rate, /*train=*/true)));
    return;
  }
  const float* biases = bias.const_data_ptr<float>();
  const int64_t stride = bias.stride(0);
  const auto threshold = static_cast<uint32_t>(mask.rate * 4294967296.0);
  const auto scale = static_cast<float>(1 / (1 - mask.rate));
  with_elements(h, [&](auto* data) {
    for_rows(data, heads, rows, n, [&](int64_t head, int64_t row, auto* values) {
      const uint32_t key = mask.rate > 0 ? mask.keys[static_cast<size_t>(head)] : 0;
      activate(values, biases + head * stride, n, static_cast<uint32_t>((mask.first_row + row) * n),
               {key, threshold, scale});
    });
  });
}

void add_bias_(at::Tensor& h, const at::Tensor& bias) {
  if (!h.is_cpu()) {
    h.add_(bias.unsqueeze(1));
    return;
  }
  const float* biases = bias.const_data_ptr<float>();
  const int64_t n = h.size(2), stride = bias.stride(0);
  with_elements(h, [&](auto* data) {
    for_rows(data, h.size(0), h.size(1), n,
             [&](int64_t head, int64_t, auto* values) { shift(values, biases + head * stride, n); });
  });
}

void relu_dropout_backward_(at::Tensor& grad, const at::Tensor& h, double p) {
  const auto scale = static_cast<float>(1 / (1 - p));
  if (!grad.is_cpu()) {
    grad.mul_(h.gt(0)).mul_(scale);
    return;
  }
  const int64_t n = grad.size(2);
  with_elements(grad, [&]<class T>(T* data) {
    const T* outputs = static_cast<const T*>(h.const_data_ptr());
    for_rows(data, grad.size(0), grad.size(1), n,
             [&](int64_t, int64_t, T* values) { gate(values, outputs + (values - data), n, scale); });
  });
}

void sum_to_bias(const at::Tensor& grad, at::Tensor bias_grad, bool accumulate) {
  at::Tensor sums;
  if (!grad.is_cpu()) {
    sums = grad.sum(1, false, at::kFloat);
  } else {
    const int64_t rows = grad.size(1), n = grad.size(2);
    sums = at::zeros({grad.size(0), n}, at::kFloat);
    with_elements(grad, [&](auto* data) {
      for (int64_t row = 0; row < grad.size(0) * rows; ++row)
        add(sums.mutable_data_ptr<float>() + row / rows * n, data + row * n, n);
    });
  }
  accumulate ? bias_grad.add_(sums) : bias_grad.copy_(sums);
}

at::Tensor row_norms(const at::Tensor& rows) {
  if (!rows.is_cpu()) return at::linalg_vector_norm(rows, 2, at::IntArrayRef{1}, false, at::kFloat);
  const int64_t heads = rows.size(0), n = rows.size(1), blocks = (n + kBlock - 1) / kBlock;
  std::vector<double> sums(static_cast<size_t>(heads * blocks));
  with_elements(rows, [&](const auto* data) {
    at::parallel_for(0, heads * blocks, 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t first = i % blocks * kBlock;
        sums[static_cast<size_t>(i)] = squares(data + i / blocks * n + first, std::min(kBlock, n - first));
      }
    });
  });
  at::Tensor norms = at::empty({heads}, at::kFloat);
  for (int64_t k = 0; k < heads; ++k) {
    double sum = 0;
    for (int64_t b = 0; b < blocks; ++b) sum += sums[static_cast<size_t>(k * blocks + b)];
    norms.mutable_data_ptr<float>()[k] = static_cast<float>(std::sqrt(sum));
  }
  return norms;
}

void adam_step(at::Tensor parameters, const at::Tensor& gradients, at::Tensor first, at::Tensor second,
               at::Tensor half, const AdamStep& step) {
  const double correction1 = 1 - std::pow(step.beta1, static_cast<double>(step.step));
  const double correction2 = 1 - std::pow(step.beta2, static_cast<double>(step.step));
  const AdamFactors factors = {
      static_cast<float>(1 / step.gradient_scale),
      static_cast<float>(step.decoupled ? 0 : step.weight_decay),
      static_cast<float>(step.decoupled ? 1 - step.learning_rate * step.weight_decay : 1),
      static_cast<float>(step.beta1),
      static_cast<float>(1 - step.beta1),
      static_cast<float>(step.beta2),
      static_cast<float>(1 - step.beta2),
      static_cast<float>(step.learning_rate / correction1),
      static_cast<float>(1 / std::sqrt(correction2)),
      static_cast<float>(step.epsilon)};
  float *p = parameters.data_ptr<float>(), *m = first.data_ptr<float>(), *v = second.data_ptr<float>();
  Bf16* copy = half.defined() ? static_cast<Bf16*>(half.data_ptr()) : nullptr;
  with_elements(gradients, [&](const auto* g) {
    at::parallel_for(0, parameters.numel(), kBlock, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; i += 1024) {  // a block's copy is written while it is in the cache
        const int64_t n = std::min<int64_t>(1024, end - i);
        adam(p + i, g + i, m + i, v + i, copy == nullptr ? nullptr : copy + i, n, factors);
      }
    });
  });
}

void copy_row(const void* from, at::ScalarType from_dtype, void* to, at::ScalarType to_dtype, int64_t n,
              RowScaling scaling) {
  with_source(from, from_dtype, [&](const auto* source) {
    if (to_dtype == at::kFloat)
      convert(source, static_cast<float*>(to), n, scaling);
    else
      convert(source, static_cast<Bf16*>(to), n, scaling);
  });
}

void add_moments(const void* from, at::ScalarType dtype, int64_t n, double weight, const double* origin,
                 double* sum, double* squares) {
  with_source(from, dtype, [&](const auto* source) {
    for (int64_t j = 0; j < n; ++j) {
      const double x = load(source[j]) - origin[j];
      sum[j] += weight * x;
      squares[j] += weight * x * x;
    }
  });
}

}  // namespace boq::iql
