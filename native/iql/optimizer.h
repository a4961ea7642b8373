// Adam with clipping by the norm of each head's gradient, over a network's one parameter buffer.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "native/iql/config.h"
#include "native/iql/networks.h"

namespace boq::iql {

/// Learning rate of step `step` (from 0) of a run of `steps`: lr0 (1 + cos(pi step / steps)) / 2, or
/// constant.
double learning_rate_at(const IqlConfig& config, int64_t step, int64_t steps);

class Adam {
 public:
  Adam() = default;
  Adam(const IqlConfig& config, const Network& network);

  /// Clips the network's gradients, updates its parameters. `norms` [K] are the gradients' norms (row_norms).
  /// Weight decay joins the gradient after clipping (adam) or shrinks the parameters (adamw).
  void step(Network& network, const at::Tensor& norms, double learning_rate);

  /// First and second moments, [K, P]; number of steps done.
  const at::Tensor& first() const { return first_; }
  const at::Tensor& second() const { return second_; }
  int64_t steps() const { return steps_; }
  void set_steps(int64_t steps) { steps_ = steps; }

 private:
  void fused_step(Network& network, int64_t head, const at::Tensor& scale, double learning_rate);

  bool decoupled_ = false;
  double beta1_ = 0.9, beta2_ = 0.999, epsilon_ = 1e-8, weight_decay_ = 0, clip_ = 0;
  at::Tensor first_;
  at::Tensor second_;
  int64_t steps_ = 0;
};

}  // namespace boq::iql
