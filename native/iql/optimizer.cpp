#include "native/iql/optimizer.h"

#include <ATen/ATen.h>

#include <cmath>
#include <numbers>
#include <vector>

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
  // The fused kernels divide the gradient by this, which saves a pass over it.
  const at::Tensor scales = clip_ > 0 ? ((norms + 1e-6) / clip_).clamp_min(1) : at::Tensor();
  for (int64_t k = 0; k < network.heads(); ++k) {
    const std::vector<at::Tensor> parameters = {network.parameters()[k]},
                                  gradients = {network.gradients()[k]}, first = {first_[k]},
                                  second = {second_[k]},
                                  steps = {at::full({}, static_cast<double>(steps_), first_.options())};
    const std::optional<at::Tensor> scale = scales.defined() ? std::optional(scales[k]) : std::nullopt;
    const auto update = [&](auto&& fused) {
      fused(parameters, gradients, first, second, {}, steps, learning_rate, beta1_, beta2_, weight_decay_,
            epsilon_,
            /*amsgrad=*/false, /*maximize=*/false, scale, std::nullopt);
    };
    using Fused = void (*)(at::TensorList, at::TensorList, at::TensorList, at::TensorList, at::TensorList,
                           at::TensorList, double, double, double, double, double, bool, bool,
                           const std::optional<at::Tensor>&, const std::optional<at::Tensor>&);
    update(decoupled_ ? static_cast<Fused>(at::_fused_adamw_) : static_cast<Fused>(at::_fused_adam_));
  }
  network.parameters_changed();
}

}  // namespace boq::iql
