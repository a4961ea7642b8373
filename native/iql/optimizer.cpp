#include "native/iql/optimizer.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <vector>

#include "native/iql/kernels.h"

namespace boq::iql {

double learning_rate_at(const IqlConfig& config, int64_t step, int64_t steps) {
  if (config.schedule == "constant") return config.learning_rate;
  const double part = static_cast<double>(step) / static_cast<double>(steps);
  return 0.5 * config.learning_rate * (1 + std::cos(std::numbers::pi * part));
}

Adam::Adam(const std::vector<IqlConfig>& configs, const Network& network)
    : configs_(configs),
      first_(at::zeros_like(network.parameters())),
      second_(at::zeros_like(network.parameters())) {
  if (!first_.is_cpu()) device_steps_ = at::zeros({}, first_.options());
}

void Adam::set_steps(int64_t steps) {
  steps_ = steps;
  if (device_steps_.defined()) device_steps_.fill_(static_cast<double>(steps));
}

void Adam::step(Network& network, const at::Tensor& norms) {
  if (!first_.is_cpu()) return step_on_device(network, norms);
  const int64_t group = network.heads() / static_cast<int64_t>(configs_.size());
  for (int64_t k = 0; k < network.heads(); ++k) {
    const IqlConfig& c = configs_[static_cast<size_t>(k / group)];
    const at::Tensor half = network.half_parameters().defined() ? network.half_parameters()[k] : at::Tensor();
    // The kernel divides the gradient by this while it reads it, which saves a pass over memory.
    const double norm = norms[k].item<double>();
    const double scale = c.gradient_clip > 0 ? std::max(1.0, (norm + 1e-6) / c.gradient_clip) : 1;
    adam_step(network.parameters()[k], network.gradients()[k], first_[k], second_[k], half,
              {learning_rate_at(c, steps_, c.steps), c.beta1, c.beta2, c.epsilon, c.weight_decay,
               c.optimizer == "adamw", steps_ + 1, scale});
  }
  ++steps_;
  network.parameters_changed(/*half_is_current=*/true);
}

// Step count, learning rate and clipping are tensors, so that a captured graph computes them anew at every
// replay.
void Adam::step_on_device(Network& network, const at::Tensor& norms) {
  const int64_t group = network.heads() / static_cast<int64_t>(configs_.size());
  const at::Tensor done = device_steps_.clone();
  device_steps_.add_(1);
  for (int64_t k = 0; k < network.heads(); ++k) {
    const IqlConfig& c = configs_[static_cast<size_t>(k / group)];
    at::Tensor rate = at::full({}, c.learning_rate, first_.options());
    if (c.schedule == "cosine")
      rate =
          (done * (std::numbers::pi / static_cast<double>(c.steps))).cos().add(1).mul(0.5 * c.learning_rate);
    const at::Tensor scale = c.gradient_clip > 0 ? ((norms[k] + 1e-6) / c.gradient_clip).clamp_min(1)
                                                 : at::ones({}, first_.options());
    const at::Tensor unusable = at::isfinite(norms[k]).logical_not().to(at::kFloat);
    const std::vector<at::Tensor> parameters = {network.parameters()[k]},
                                  gradients = {network.gradients()[k].to(at::kFloat)}, first = {first_[k]},
                                  second = {second_[k]}, steps = {device_steps_};
    if (c.optimizer == "adamw")
      at::_fused_adamw_(parameters, gradients, first, second, {}, steps, rate, c.beta1, c.beta2,
                        c.weight_decay, c.epsilon, /*amsgrad=*/false, /*maximize=*/false, scale, unusable);
    else
      at::_fused_adam_(parameters, gradients, first, second, {}, steps, rate, c.beta1, c.beta2,
                       c.weight_decay, c.epsilon, /*amsgrad=*/false, /*maximize=*/false, scale, unusable);
  }
  ++steps_;
  network.parameters_changed();
}

}  // namespace boq::iql
