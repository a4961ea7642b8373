// Adam with clipping by the norm of each head's gradient, over a network's one parameter buffer.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "native/iql/config.h"
#include "native/iql/networks.h"

namespace boq::iql {

/// Learning rate of step `step` (from 0) of a run of `steps`: lr0 (1 + cos(pi step / steps)) / 2, or
/// constant.
double learning_rate_at(const IqlConfig& config, int64_t step, int64_t steps);

class Adam {
 public:
  Adam() = default;
  /// With several configurations the heads fall into as many groups of equal size.
  Adam(const std::vector<IqlConfig>& configs, const Network& network);

  /// One step of every head, at the learning rate of its configuration: clips the gradient by its norm
  /// (`norms` [K], row_norms), updates the parameters. Weight decay joins the gradient after clipping (adam)
  /// or shrinks the parameters (adamw). On other devices than the CPU nothing here waits for the device, and
  /// heads whose norm is not finite stay as they are.
  void step(Network& network, const at::Tensor& norms);

  /// First and second moments, [K, P]; number of steps done.
  const at::Tensor& first() const { return first_; }
  const at::Tensor& second() const { return second_; }
  int64_t steps() const { return steps_; }
  void set_steps(int64_t steps);
  /// Counts steps that the device took by itself.
  void count_step(int64_t by) { steps_ += by; }

 private:
  void step_on_device(Network& network, const at::Tensor& norms);

  std::vector<IqlConfig> configs_;
  at::Tensor first_;
  at::Tensor second_;
  at::Tensor device_steps_;  // float32 scalar beside the moments, off the CPU
  int64_t steps_ = 0;
};

}  // namespace boq::iql
