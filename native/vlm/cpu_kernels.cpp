#include "native/vlm/cpu_kernels.h"

#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>

#include <algorithm>
#include <cmath>

#include "native/core/error.h"
#include "native/core/simd.h"

namespace boq::vlm::cpu {

namespace {

using c10::BFloat16;

/// Elements below which waking a second thread costs more than it brings.
constexpr int64_t kElementsPerThread = 1 << 17;

int64_t grain(int64_t row_elements) {
  return std::max<int64_t>(1, kElementsPerThread / std::max<int64_t>(1, row_elements));
}

template <class V, class T>
BOQ_INLINE void rms_norm_rows_of(const T* x, const T* weight, T* y, int64_t rows, int64_t width, double eps) {
  const auto whole = width / V::kLanes * V::kLanes, rest = width - whole;
  for (int64_t row = 0; row < rows; ++row, x += width, y += width) {
    typename V::Floats squares{};
    for (int64_t i = 0; i < whole; i += V::kLanes) {
      const typename V::Floats value = V::load(x + i);
      squares += value * value;
    }
    if (rest > 0) {
      const typename V::Floats value = V::load_some(x + whole, rest);
      squares += value * value;
    }
    const auto mean = V::sum(squares) / static_cast<float>(width);
    const float scale = 1.0f / std::sqrt(mean + static_cast<float>(eps));
    for (int64_t i = 0; i < whole; i += V::kLanes) {
      V::store(y + i, V::template rounded<T>(V::load(x + i) * scale) * V::load(weight + i));
    }
    if (rest > 0) {
      const typename V::Floats value = V::template rounded<T>(V::load_some(x + whole, rest) * scale);
      V::store_some(y + whole, value * V::load_some(weight + whole, rest), rest);
    }
  }
}

template <class V, class T>
BOQ_INLINE typename V::Floats silu_times(typename V::Floats gate, typename V::Floats up) {
  return V::template rounded<T>(gate / (1.0f + V::exp(-gate))) * up;
}

template <class V, class T>
BOQ_INLINE void silu_mul_rows_of(const T* gate_up, T* out, int64_t rows, int64_t width) {
  const auto whole = width / V::kLanes * V::kLanes, rest = width - whole;
  for (int64_t row = 0; row < rows; ++row, gate_up += 2 * width, out += width) {
    for (int64_t i = 0; i < whole; i += V::kLanes) {
      V::store(out + i, silu_times<V, T>(V::load(gate_up + i), V::load(gate_up + width + i)));
    }
    if (rest > 0) {
      const typename V::Floats up = V::load_some(gate_up + width + whole, rest);
      V::store_some(out + whole, silu_times<V, T>(V::load_some(gate_up + whole, rest), up), rest);
    }
  }
}

/// T: type of the heads; A: type in which the rotation is computed and rounded.
template <class V, class T, class A>
BOQ_INLINE void rotate_rows_of(T* x, const A* cos, const A* sin, int64_t rows, int64_t heads, int64_t pairs,
                               int64_t row_stride) {
  const auto whole = pairs / V::kLanes * V::kLanes, rest = pairs - whole;
  const auto rotate = [](typename V::Floats& low, typename V::Floats& high, typename V::Floats c,
                         typename V::Floats s) {
    const typename V::Floats new_low = V::template rounded<A>(low * c) - V::template rounded<A>(high * s);
    high = V::template rounded<A>(high * c) + V::template rounded<A>(low * s);
    low = new_low;
  };
  for (int64_t row = 0; row < rows; ++row, x += row_stride, cos += pairs, sin += pairs) {
    for (int64_t head = 0; head < heads; ++head) {
      T* low_half = x + head * 2 * pairs;
      T* high_half = low_half + pairs;
      for (int64_t i = 0; i < whole; i += V::kLanes) {
        typename V::Floats low = V::load(low_half + i), high = V::load(high_half + i);
        rotate(low, high, V::load(cos + i), V::load(sin + i));
        V::store(low_half + i, low);
        V::store(high_half + i, high);
      }
      if (rest > 0) {
        typename V::Floats low = V::load_some(low_half + whole, rest),
                           high = V::load_some(high_half + whole, rest);
        rotate(low, high, V::load_some(cos + whole, rest), V::load_some(sin + whole, rest));
        V::store_some(low_half + whole, low, rest);
        V::store_some(high_half + whole, high, rest);
      }
    }
  }
}

// One plain function per type: templates cannot be dispatched on.
BOQ_PER_CPU(void rms_norm_rows(const float* x, const float* w, float* y, int64_t n, int64_t width,
                               double eps),
            rms_norm_rows_of<V>(x, w, y, n, width, eps))
BOQ_PER_CPU(void rms_norm_rows(const BFloat16* x, const BFloat16* w, BFloat16* y, int64_t n, int64_t width,
                               double eps),
            rms_norm_rows_of<V>(x, w, y, n, width, eps))
BOQ_PER_CPU(void silu_mul_rows(const float* gate_up, float* out, int64_t n, int64_t width),
            silu_mul_rows_of<V>(gate_up, out, n, width))
BOQ_PER_CPU(void silu_mul_rows(const BFloat16* gate_up, BFloat16* out, int64_t n, int64_t width),
            silu_mul_rows_of<V>(gate_up, out, n, width))
BOQ_PER_CPU(void rotate_rows(float* x, const float* cos, const float* sin, int64_t n, int64_t heads,
                             int64_t pairs, int64_t stride),
            rotate_rows_of<V>(x, cos, sin, n, heads, pairs, stride))
BOQ_PER_CPU(void rotate_rows(BFloat16* x, const float* cos, const float* sin, int64_t n, int64_t heads,
                             int64_t pairs, int64_t stride),
            rotate_rows_of<V>(x, cos, sin, n, heads, pairs, stride))
BOQ_PER_CPU(void rotate_rows(BFloat16* x, const BFloat16* cos, const BFloat16* sin, int64_t n, int64_t heads,
                             int64_t pairs, int64_t stride),
            rotate_rows_of<V>(x, cos, sin, n, heads, pairs, stride))

/// Calls action(T{}) for the type of `tensor`.
template <class Action>
void for_type(const at::Tensor& tensor, Action&& action) {
  if (tensor.scalar_type() == at::kFloat) return action(float{});
  if (tensor.scalar_type() == at::kBFloat16) return action(BFloat16{});
  fail(ErrorCode::kDtypeUnsupported, "CPU kernels compute in float32 or bfloat16, not ",
       c10::toString(tensor.scalar_type()));
}

}  // namespace

at::Tensor rms_norm(const at::Tensor& x, const at::Tensor& weight, double eps) {
  const auto input = x.contiguous();
  const auto width = x.size(-1), rows = x.numel() / width;
  auto out = at::empty(x.sizes(), x.options());
  for_type(x, [&](auto type) {
    using T = decltype(type);
    const auto* source = input.template const_data_ptr<T>();
    auto* target = out.template data_ptr<T>();
    at::parallel_for(0, rows, grain(width), [&](int64_t begin, int64_t end) {
      rms_norm_rows(source + begin * width, weight.const_data_ptr<T>(), target + begin * width, end - begin,
                    width, eps);
    });
  });
  return out;
}

at::Tensor silu_mul(const at::Tensor& gate_up) {
  const auto rows = gate_up.size(0), width = gate_up.size(1) / 2;
  auto out = at::empty({rows, width}, gate_up.options());
  for_type(gate_up, [&](auto type) {
    using T = decltype(type);
    const auto* source = gate_up.template const_data_ptr<T>();
    auto* target = out.template data_ptr<T>();
    at::parallel_for(0, rows, grain(width), [&](int64_t begin, int64_t end) {
      silu_mul_rows(source + begin * 2 * width, target + begin * width, end - begin, width);
    });
  });
  return out;
}

void rotate_heads(const at::Tensor& x, const at::Tensor& cos, const at::Tensor& sin) {
  const auto rows = x.size(0), heads = x.size(1), pairs = x.size(2) / 2, stride = x.stride(0);
  for_type(x, [&](auto type) {
    using T = decltype(type);
    for_type(cos, [&](auto angle_type) {
      using A = decltype(angle_type);
      if constexpr (std::is_same_v<T, float> && std::is_same_v<A, BFloat16>) {
        fail(ErrorCode::kInternal, "float32 heads with bfloat16 angles");
      } else {
        auto* values = x.template data_ptr<T>();
        const auto *c = cos.template const_data_ptr<A>(), *s = sin.template const_data_ptr<A>();
        at::parallel_for(0, rows, grain(heads * pairs * 2), [&](int64_t begin, int64_t end) {
          rotate_rows(values + begin * stride, c + begin * pairs, s + begin * pairs, end - begin, heads,
                      pairs, stride);
        });
      }
    });
  });
}

}  // namespace boq::vlm::cpu
