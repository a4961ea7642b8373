#include "native/iql/losses.h"

#include <ATen/ATen.h>

#include <cmath>

namespace boq::iql {
namespace {

constexpr double kLow = -0.1, kHigh = 1.1;  // of the histogram: values of a 0/1 reward, with room for errors
constexpr double kSigmaInBins = 0.75;

// `each` and `grad`: the loss of every element and its derivative.
Loss mean_over_batch(const at::Tensor& each, const at::Tensor& grad, const at::Tensor& weight) {
  if (!weight.defined()) return {each.mean(1), grad / static_cast<double>(each.size(1))};
  return {(each * weight).sum(1), grad * (grad.dim() == 3 ? weight.unsqueeze(2) : weight)};
}

}  // namespace

Loss expectile_loss(const at::Tensor& q, const at::Tensor& v, double tau) {
  return expectile_loss(q, v, at::full({1, 1}, tau, q.options().dtype(at::kDouble)));
}

Loss expectile_loss(const at::Tensor& q, const at::Tensor& v, const at::Tensor& tau) {
  const at::Tensor u = q - v;
  const at::Tensor weight = at::where(u < 0, 1 - tau, tau).to(u.scalar_type());
  return mean_over_batch(weight * u * u, -2 * weight * u, {});
}

Loss squared_loss(const at::Tensor& q, const at::Tensor& y, const at::Tensor& weight) {
  const at::Tensor error = q - y;
  return mean_over_batch(error * error, 2 * error, weight);
}

Loss binary_loss(const at::Tensor& logit, const at::Tensor& y, const at::Tensor& weight) {
  const at::Tensor target = y.clamp(0, 1);
  return mean_over_batch(at::softplus(logit) - target * logit, at::sigmoid(logit) - target, weight);
}

at::Tensor bin_centers(int64_t n, at::Device device) {
  const double width = (kHigh - kLow) / static_cast<double>(n);
  return at::linspace(kLow + width / 2, kHigh - width / 2, n, at::TensorOptions(at::kFloat).device(device));
}

at::Tensor histogram_of(const at::Tensor& y, int64_t n) {
  const double width = (kHigh - kLow) / static_cast<double>(n);
  const at::Tensor edges = at::linspace(kLow, kHigh, n + 1, y.options());
  const at::Tensor clamped = y.clamp(kLow + width / 2, kHigh - width / 2).unsqueeze(-1);
  const at::Tensor mass = at::erf((edges - clamped) / (std::sqrt(2.0) * kSigmaInBins * width));
  const at::Tensor bins = mass.narrow(-1, 1, n) - mass.narrow(-1, 0, n);
  return bins / bins.sum(-1, true);
}

Loss histogram_loss(const at::Tensor& logits, const at::Tensor& y, const at::Tensor& weight) {
  const at::Tensor target = histogram_of(y, logits.size(2));
  const at::Tensor log_probability = at::log_softmax(logits, 2);
  return mean_over_batch(-(target * log_probability).sum(2), log_probability.exp() - target, weight);
}

Loss ranking_loss(const at::Tensor& better, const at::Tensor& worse) {
  const at::Tensor gap = worse - better;
  return mean_over_batch(at::softplus(gap), -at::sigmoid(gap), {});
}

Loss conservative_loss(const at::Tensor& q, const at::Tensor& group, const at::Tensor& chosen) {
  const int64_t groups = chosen.size(0);
  const at::Tensor index = group.unsqueeze(0).expand_as(q);
  const at::Tensor floor = at::full({q.size(0), groups}, -INFINITY, q.options());
  const at::Tensor top = floor.scatter_reduce(1, index, q.detach(), "amax");
  const at::Tensor shifted = (q - top.gather(1, index)).exp();
  const at::Tensor total = at::zeros_like(top).scatter_add(1, index, shifted);
  const at::Tensor value = (total.log() + top - q.index_select(1, chosen)).mean(1);
  at::Tensor grad = shifted / total.gather(1, index);
  grad = grad.index_add(1, chosen, at::full({q.size(0), groups}, -1.0, q.options()));
  return {value, grad / static_cast<double>(groups)};
}

}  // namespace boq::iql
