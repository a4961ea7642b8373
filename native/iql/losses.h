// The losses, as free functions of what the networks put out. Each returns its value and its gradient; tests
// compare the gradients with autograd. Shapes: K heads, B transitions. A head's loss is the mean over
// the transitions, or their sum under `weight` [K, B] where it is given.
#pragma once

#include <ATen/core/Tensor.h>

namespace boq::iql {

struct Loss {
  at::Tensor value;  ///< [K]
  at::Tensor grad;   ///< of the sum over heads, by the argument; the argument's shape
};

/// IQL eq. 5, the paper's L_V: mean of |tau - 1(u < 0)| u^2 with u = q - v. Gradient by v. q and v: [K, B];
/// tau: float64 [K, 1] or one number for all.
Loss expectile_loss(const at::Tensor& q, const at::Tensor& v, const at::Tensor& tau);
Loss expectile_loss(const at::Tensor& q, const at::Tensor& v, double tau);

/// IQL eq. 6, the paper's L_Q: mean of (y - q)^2. q: [K, B], y: [1, B] or [K, B].
Loss squared_loss(const at::Tensor& q, const at::Tensor& y, const at::Tensor& weight = {});

/// Cross-entropy of sigmoid(logit) with y clamped to [0, 1].
Loss binary_loss(const at::Tensor& logit, const at::Tensor& y, const at::Tensor& weight = {});

/// y [1 or K, B] as a histogram: the mass of a normal distribution around y (sigma 0.75 bins) in each of n
/// bins over
/// [-0.1, 1.1], normalised (arXiv 2403.03950, section 3.1). Returns [1 or K, B, n].
at::Tensor histogram_of(const at::Tensor& y, int64_t n);
/// Means of the bins, [n].
at::Tensor bin_centers(int64_t n, at::Device device);
/// Cross-entropy of softmax(logits [K, B, n]) with histogram_of(y).
Loss histogram_loss(const at::Tensor& logits, const at::Tensor& y, const at::Tensor& weight = {});

/// Mean of log(1 + exp(worse - better)), both [K, B]: gradient by `better`; by `worse` it is the negative.
Loss ranking_loss(const at::Tensor& better, const at::Tensor& worse);

/// log sum exp of q over each group of candidates minus q of the chosen one, mean over the G groups (CQL's
/// term on what was offered). q: [K, C]; group [C], sorted, in [0, G); chosen [G]: a column of q each.
Loss conservative_loss(const at::Tensor& q, const at::Tensor& group, const at::Tensor& chosen);

}  // namespace boq::iql
