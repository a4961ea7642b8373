#include "native/iql/iql.h"

#include <ATen/ATen.h>

#include <cmath>

#include "native/core/error.h"
#include "native/iql/kernels.h"
#include "native/iql/losses.h"
#include "native/iql/random.h"

namespace boq::iql {
namespace {

std::vector<std::string> streams_of(const IqlConfig& config, bool with_action) {
  std::vector<std::string> streams;
  if (config.use_state) streams.push_back("state");
  if (with_action && config.use_action) streams.push_back("action");
  if (config.use_task) streams.push_back("task");
  return streams;
}

// The gradient by the outputs, given the one by the values.
at::Tensor through_values(const IqlConfig& config, const at::Tensor& outputs, const at::Tensor& grad) {
  if (config.value_loss == "mse") return grad.unsqueeze(2);
  if (config.value_loss == "bce") {
    const at::Tensor value = at::sigmoid(outputs);
    return grad.unsqueeze(2) * value * (1 - value);
  }
  const at::Tensor probability = at::softmax(outputs, 2);
  const at::Tensor value = values_of(config, outputs).unsqueeze(2);
  return grad.unsqueeze(2) * probability * (bin_centers(outputs.size(2), outputs.device()) - value);
}

void require_finite(const char* what, double value, int64_t step) {
  BOQ_CHECK(std::isfinite(value), ErrorCode::kNotFinite, "expected a finite ", what, " at step ", step + 1,
            ", got ", value,
            "; lower learningRate, or look for wild values in the embeddings. The last checkpoint is intact");
}

}  // namespace

NetworkShape q_shape(const IqlConfig& config, int64_t width) {
  const int64_t outputs = config.value_loss == "hl-gauss" ? config.bins : 1;
  return {streams_of(config, true), width, config.projection, config.hidden, outputs};
}

NetworkShape v_shape(const IqlConfig& config, int64_t width) {
  return {streams_of(config, false), width, config.projection, config.hidden, 1};
}

std::vector<at::Tensor> select_inputs(const NetworkShape& shape, const at::Tensor& state,
                                      const at::Tensor& action, const at::Tensor& task) {
  std::vector<at::Tensor> inputs;
  for (const auto& stream : shape.streams)
    inputs.push_back(stream == "state" ? state : stream == "action" ? action : task);
  return inputs;
}

at::Tensor values_of(const IqlConfig& config, const at::Tensor& outputs) {
  if (config.value_loss == "mse") return outputs.squeeze(2);
  if (config.value_loss == "bce") return at::sigmoid(outputs).squeeze(2);
  return at::matmul(at::softmax(outputs, 2), bin_centers(outputs.size(2), outputs.device()));
}

Iql::Iql(const IqlConfig& config, int64_t width, at::Device device) : config_(config) {
  const bool half = config.precision == "bfloat16";
  q_ = Network(q_shape(config, width), config.heads, device, half);
  target_ = Network(q_shape(config, width), config.heads, device, half);
  v_ = Network(v_shape(config, width), 1, device, half);
  const auto seed = static_cast<uint64_t>(config.seed);
  q_.initialise(seed, 0);
  v_.initialise(seed, 1);
  target_.parameters().copy_(q_.parameters());
  target_changed();
  q_adam_ = Adam(config, q_);
  v_adam_ = Adam(config, v_);
}

// One step, in the order of the official implementation: V first, then Q with the fresh V, then the target.
// Dropout is on in the two passes that are differentiated and off in the two that only give targets.
//
//   L_V = mean |tau - 1(u < 0)| u^2,  u = Q_target(s, a) - V(s)        (paper eq. 3; IQL eq. 5)
//   L_Q = mean (y - Q(s, a))^2,       y = r + gamma (1 - done) V(s')   (paper eq. 4; IQL eq. 6)
StepReport Iql::step(const Batch& batch) {
  const double learning_rate = learning_rate_at(config_, steps_done_, config_.steps);
  StepReport report;
  report.learning_rate = learning_rate;

  const at::Tensor q_target = target_values(batch.state, batch.action, batch.task);
  Tape tape;
  const at::Tensor v =
      v_.forward(select_inputs(v_.shape(), batch.state, batch.action, batch.task), dropout_for(0), tape)
          .squeeze(2);
  const Loss v_loss = expectile_loss(q_target, v, config_.tau);
  v_.backward(tape, v_loss.grad.unsqueeze(2));
  const at::Tensor v_norm = row_norms(v_.gradients());
  report.loss_v = v_loss.value.item<double>();
  report.v_norm = v_norm.item<double>();
  require_finite("loss of V", report.loss_v, steps_done_);
  require_finite("gradient of V", report.v_norm, steps_done_);
  v_adam_.step(v_, v_norm, learning_rate);

  const at::Tensor q_loss = regress_q(batch, regression_target(batch));
  const at::Tensor q_norms = row_norms(q_.gradients());
  report.loss_q = q_loss.mean().item<double>();
  report.q_norm = q_norms.max().item<double>();
  require_finite("loss of Q", report.loss_q, steps_done_);
  require_finite("gradient of Q", report.q_norm, steps_done_);
  q_adam_.step(q_, q_norms, learning_rate);

  ++steps_done_;
  update_target();
  report.v_mean = v.mean().item<double>();
  report.q_mean = q_target.mean().item<double>();
  report.advantage = report.q_mean - report.v_mean;
  return report;
}

// Q_target(s, a), heads joined: [1, B].
at::Tensor Iql::target_values(const at::Tensor& state, const at::Tensor& action,
                              const at::Tensor& task) const {
  const at::Tensor heads =
      values_of(config_, target_.forward(select_inputs(target_.shape(), state, action, task)));
  if (heads.size(0) == 1) return heads;
  return config_.head_aggregate == "min" ? heads.amin(0, true) : heads.mean(0, true);
}

at::Tensor Iql::regression_target(const Batch& batch) const {
  if (config_.q_target == "monte-carlo" || config_.q_target == "outcome") return batch.outcome;
  if (config_.q_target == "sarsa")
    return batch.reward + batch.discount * target_values(batch.next_state, batch.next_action, batch.task);
  return batch.reward + batch.discount * v_values(batch.next_state, batch.task).unsqueeze(0);
}

// Leaves the gradient of Q's loss in q_; returns the loss of every head.
at::Tensor Iql::regress_q(const Batch& batch, const at::Tensor& y) {
  Tape tape;
  const at::Tensor outputs =
      q_.forward(select_inputs(q_.shape(), batch.state, batch.action, batch.task), dropout_for(1), tape);
  Loss loss;
  if (config_.value_loss == "hl-gauss") {
    loss = histogram_loss(outputs, y, batch.mask);
  } else {
    const at::Tensor scalar = outputs.squeeze(2);
    loss = config_.value_loss == "bce" ? binary_loss(scalar, y, batch.mask)
                                       : squared_loss(scalar, y, batch.mask);
    loss.grad = loss.grad.unsqueeze(2);
  }
  q_.backward(tape, loss.grad);
  if (config_.conservative > 0) add_conservative(batch.candidates, dropout_for(2));
  if (config_.ranking > 0 && batch.pairs.state.defined()) add_ranking(batch.pairs, dropout_for(3));
  return loss.value;
}

void Iql::add_conservative(const Batch::Candidates& candidates, Dropout dropout) {
  Tape tape;
  const at::Tensor outputs = q_.forward(
      select_inputs(q_.shape(), candidates.state, candidates.action, candidates.task), dropout, tape);
  const Loss loss = conservative_loss(values_of(config_, outputs), candidates.group, candidates.chosen);
  q_.backward(tape, through_values(config_, outputs, loss.grad * config_.conservative), /*accumulate=*/true);
}

void Iql::add_ranking(const Batch::Pairs& pairs, Dropout dropout) {
  Tape tape;
  const at::Tensor state = at::cat({pairs.state, pairs.state}), task = at::cat({pairs.task, pairs.task});
  const at::Tensor action = at::cat({pairs.better, pairs.worse});
  const at::Tensor outputs = q_.forward(select_inputs(q_.shape(), state, action, task), dropout, tape);
  const std::vector<at::Tensor> halves = values_of(config_, outputs).chunk(2, 1);
  const at::Tensor grad = ranking_loss(halves[0], halves[1]).grad * config_.ranking;
  q_.backward(tape, through_values(config_, outputs, at::cat({grad, -grad}, 1)), /*accumulate=*/true);
}

void Iql::update_target() {
  if (config_.polyak > 0)
    target_.parameters().lerp_(q_.parameters(), config_.polyak);
  else if (steps_done_ % config_.target_period == 0)
    target_.parameters().copy_(q_.parameters());
  else
    return;
  target_changed();
}

void Iql::target_changed() {
  target_.parameters_changed();
  if (config_.polyak == 0 && target_.is_worth_folding(config_.target_period * config_.batch_size))
    target_.fold();
}

Dropout Iql::dropout_for(uint64_t pass) const {
  const auto step = static_cast<uint64_t>(steps_done_);
  return {config_.dropout, draw_key(static_cast<uint64_t>(config_.seed), Draw::kDropout, step, pass)};
}

at::Tensor Iql::q_values(const at::Tensor& state, const at::Tensor& action, const at::Tensor& task) const {
  return values_of(config_, q_.forward(select_inputs(q_.shape(), state, action, task)));
}

at::Tensor Iql::v_values(const at::Tensor& state, const at::Tensor& task) const {
  return v_.forward(select_inputs(v_.shape(), state, {}, task)).select(0, 0).squeeze(1);
}

}  // namespace boq::iql
