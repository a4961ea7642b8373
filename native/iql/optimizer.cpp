#include "native/iql/optimizer.h"

#include <ATen/ATen.h>

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

Adam::Adam(const IqlConfig& config, const Network& network)
    : decoupled_(config.optimizer == "adamw"),
      beta1_(config.beta1),
      beta2_(config.beta2),
      epsilon_(config.epsilon),
      weight_decay_(config.weight_decay),
      clip_(config.gradient_clip),
      first_(at::zeros_like(network.parameters())),
      second_(at::zeros_like(network.parameters())) {}

void Adam::step(Network& network, const at::Tensor& norms, double learning_rate) {
  ++steps_;
  // Both kernels divide the gradient by this while they read it, which saves a pass over memory.
  const at::Tensor scales = clip_ > 0 ? ((norms + 1e-6) / clip_).clamp_min(1) : at::ones_like(norms);
  for (int64_t k = 0; k < network.heads(); ++k) {
    if (first_.is_cpu()) {
      const at::Tensor half =
          network.half_parameters().defined() ? network.half_parameters()[k] : at::Tensor();
      adam_step(network.parameters()[k], network.gradients()[k], first_[k], second_[k], half,
                {learning_rate, beta1_, beta2_, epsilon_, weight_decay_, decoupled_, steps_,
                 scales[k].item<double>()});
    } else {
      fused_step(network, k, scales[k], learning_rate);
    }
  }
  network.parameters_changed(/*half_is_current=*/first_.is_cpu());
}

void Adam::fused_step(Network& network, int64_t k, const at::Tensor& scale, double learning_rate) {
  const std::vector<at::Tensor> parameters = {network.parameters()[k]},
                                gradients = {network.gradients()[k].to(at::kFloat)}, first = {first_[k]},
                                second = {second_[k]},
                                steps = {at::full({}, static_cast<double>(steps_), first_.options())};
  if (decoupled_)
    at::_fused_adamw_(parameters, gradients, first, second, {}, steps, learning_rate, beta1_, beta2_,
                      weight_decay_, epsilon_, /*amsgrad=*/false, /*maximize=*/false, scale);
  else
    at::_fused_adam_(parameters, gradients, first, second, {}, steps, learning_rate, beta1_, beta2_,
                     weight_decay_, epsilon_, /*amsgrad=*/false, /*maximize=*/false, scale);
}

}  // namespace boq::iql
