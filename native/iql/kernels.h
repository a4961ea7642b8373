// The element-wise passes of training. On the CPU each is one loop over memory, spread over threads in blocks
// of fixed size so that results do not depend on the number of threads; on other devices it is a few ATen
// calls.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

namespace boq::iql {

/// What dropout keeps: element i of head k is kept (and scaled by 1 / (1 - rate)) by a hash of keys[k] and i.
struct DropoutMask {
  double rate = 0;             ///< 0 keeps all
  std::vector<uint32_t> keys;  ///< one a head
  int64_t first_row = 0;       ///< number of the first row within the batch of all processes
};

/// h := dropout(relu(h + bias)) in place. h: [K, B, n], float32 or bfloat16, contiguous; bias: [K, n] float32
/// with unit stride in n. On other devices than the CPU, chance is the device's own generator's.
void bias_relu_dropout_(at::Tensor& h, const at::Tensor& bias, const DropoutMask& mask = {});

/// h := h + bias in place, shapes as above.
void add_bias_(at::Tensor& h, const at::Tensor& bias);

/// The gradient through dropout(relu(.)) in place: a value of 0 in `h`, the layer's output, passes nothing.
void relu_dropout_backward_(at::Tensor& grad, const at::Tensor& h, double p);

/// bias_grad[k, n] := (or +=) sum over the batch of grad[k, b, n].
void sum_to_bias(const at::Tensor& grad, at::Tensor bias_grad, bool accumulate);

/// Euclidean norm of every row: [K, P] float32 or bfloat16 -> [K] float32, summed in double.
at::Tensor row_norms(const at::Tensor& rows);

/// What one step of Adam needs besides its tensors.
struct AdamStep {
  double learning_rate = 0, beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8, weight_decay = 0;
  bool decoupled = false;     ///< AdamW: the parameter shrinks; else decay joins the gradient
  int64_t step = 1;           ///< counted from 1, for the bias correction
  double gradient_scale = 1;  ///< the gradient is divided by it
};

/// One step of Adam over n numbers on the CPU: reads the gradient (float32 or bfloat16), updates parameters
/// and moments and, where `half` is defined, writes the parameters in bfloat16 too. All in one pass over
/// memory, which is what bounds it. One-dimensional, contiguous.
void adam_step(at::Tensor parameters, const at::Tensor& gradients, at::Tensor first, at::Tensor second,
               at::Tensor half, const AdamStep& step);

/// How a row is changed on its way into a batch: clamp((x - mean) / std, -clip, clip). Null pointers: not at
/// all.
struct RowScaling {
  const float* mean = nullptr;
  const float* std = nullptr;
  float clip = 0;  ///< 0: no limit
};

/// Copies n numbers (float32, bfloat16 or float16) to float32 or bfloat16.
void copy_row(const void* from, at::ScalarType from_dtype, void* to, at::ScalarType to_dtype, int64_t n,
              RowScaling scaling);

/// sum[j] += weight * (x[j] - origin[j]), squares[j] += weight * (x[j] - origin[j])^2.
void add_moments(const void* from, at::ScalarType dtype, int64_t n, double weight, const double* origin,
                 double* sum, double* squares);

}  // namespace boq::iql
