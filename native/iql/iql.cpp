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
  if (with_action && config.use_match) streams.push_back("match");
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

void require_finite(const char* what, const at::Tensor& values, int64_t step) {
  BOQ_CHECK(at::isfinite(values).all().item<bool>(), ErrorCode::kNotFinite,
            "expected a finite loss and gradient at step ", step + 1, ", of ", what, " they are ",
            values.view(-1),
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
                                      const at::Tensor& action, const at::Tensor& task,
                                      const at::Tensor& owner) {
  std::vector<at::Tensor> inputs;
  for (const auto& stream : shape.streams)
    inputs.push_back(stream == "state"    ? state
                     : stream == "action" ? action
                     : stream == "task"   ? task
                     : owner.defined()    ? action * task.index_select(0, owner)
                                          : action * task);
  return inputs;
}

at::Tensor values_of(const IqlConfig& config, const at::Tensor& outputs) {
  if (config.value_loss == "mse") return outputs.squeeze(2);
  if (config.value_loss == "bce") return at::sigmoid(outputs).squeeze(2);
  return at::matmul(at::softmax(outputs, 2), bin_centers(outputs.size(2), outputs.device()));
}

bool can_share_run(const IqlConfig& a, const IqlConfig& b) {
  const auto shape_of = [](const IqlConfig& config) {
    Json json = config_to_json(config);
    for (const char* free : {"preset", "seed", "tau", "gamma", "polyak", "learningRate", "weightDecay",
                             "beta1", "beta2", "epsilon", "gradientClip", "headShare"})
      json.erase(free);
    // These two only matter as "on or off".
    json["averaged"] = config.polyak > 0;
    json["masked"] = config.head_share < 1;
    return json;
  };
  const bool ragged = a.conservative > 0 || a.ranking > 0 || a.shuffle_rewards;
  return !ragged && shape_of(a) == shape_of(b);
}

Batch join_batches(const std::vector<Batch>& batches) {
  if (batches.size() == 1) return batches[0];
  const auto joined = [&](at::Tensor Batch::*part, bool stacked) {
    std::vector<at::Tensor> parts;
    for (const Batch& batch : batches) {
      BOQ_CHECK(!batch.candidates.state.defined() && !batch.pairs.state.defined(), ErrorCode::kConfigInvalid,
                "models with conservative or ranking terms are trained one after the other");
      if (!(batch.*part).defined()) return at::Tensor();
      parts.push_back(batch.*part);
    }
    return stacked ? at::stack(parts) : at::cat(parts);
  };
  Batch all;
  for (at::Tensor Batch::*rows :
       {&Batch::state, &Batch::action, &Batch::task, &Batch::next_state, &Batch::next_action})
    all.*rows = joined(rows, true);
  for (at::Tensor Batch::*numbers : {&Batch::reward, &Batch::discount, &Batch::outcome, &Batch::weight})
    all.*numbers = joined(numbers, false);
  all.first_row = batches[0].first_row;
  return all;
}

Iql::Iql(const std::vector<IqlConfig>& configs, int64_t width, at::Device device) : configs_(configs) {
  const IqlConfig& config = configs_.at(0);
  std::vector<uint64_t> seeds;
  std::vector<double> tau;
  for (const IqlConfig& each : configs_) {
    BOQ_CHECK(configs_.size() == 1 || can_share_run(config, each), ErrorCode::kConfigInvalid,
              "these models differ in what shapes their training, and cannot be trained in one run");
    seeds.push_back(static_cast<uint64_t>(each.seed));
    tau.push_back(each.tau);
  }
  tau_ = at::tensor(tau, at::kDouble).unsqueeze(1).to(device);
  const bool half = config.precision == "bfloat16";
  q_ = Network(q_shape(config, width), models() * config.heads, device, half);
  target_ = Network(q_shape(config, width), models() * config.heads, device, half);
  v_ = Network(v_shape(config, width), models(), device, half);
  q_.initialise(seeds, 0);
  v_.initialise(seeds, 1);
  target_.parameters().copy_(q_.parameters());
  target_changed();
  q_adam_ = Adam(configs_, q_);
  v_adam_ = Adam(configs_, v_);
}

void Iql::set_steps_done(int64_t steps) {
  steps_done_ = steps;
  q_adam_.set_steps(steps);
  v_adam_.set_steps(steps);
}

void Iql::count_step(int64_t by) {
  steps_done_ += by;
  q_adam_.count_step(by);
  v_adam_.count_step(by);
}

std::vector<StepReport> Iql::step_all(const Batch& batch) {
  const at::Tensor report = advance(batch);
  update_target();
  return read_report(report);
}

// One step, in the order of the official implementation: V first, then Q with the fresh V, then the target
// (update_target). Dropout is on in the two passes that are differentiated and off in the two that only give
// targets.
//
//   L_V = mean |tau - 1(u < 0)| u^2,  u = Q_target(s, a) - V(s)        (paper eq. 3; IQL eq. 5)
//   L_Q = mean (y - Q(s, a))^2,       y = r + gamma (1 - done) V(s')   (paper eq. 4; IQL eq. 6)
at::Tensor Iql::advance(const Batch& batch) {
  const at::Tensor q_target = target_values(batch.state, batch.action, batch.task);
  Tape tape;
  const at::Tensor v = v_.forward(select_inputs(v_.shape(), batch.state, batch.action, batch.task),
                                  dropout_for(0, batch.first_row), tape)
                           .squeeze(2);
  const Loss v_loss = expectile_loss(q_target, v, tau_);
  v_.backward(tape, v_loss.grad.unsqueeze(2));
  average_gradients(v_);
  const at::Tensor v_norm = row_norms(v_.gradients());
  if (device().is_cpu()) require_finite("V", at::stack({v_loss.value, v_norm}), steps_done_);
  v_adam_.step(v_, v_norm);

  const at::Tensor q_loss = regress_q(batch, regression_target(batch)).view({models(), -1});
  average_gradients(q_);
  const at::Tensor q_norms = row_norms(q_.gradients());
  if (device().is_cpu()) require_finite("Q", at::cat({q_loss.view(-1), q_norms}), steps_done_);
  q_adam_.step(q_, q_norms);

  ++steps_done_;
  at::Tensor report = at::stack({v_loss.value, q_loss.mean(1), v.mean(1), q_target.mean(1), v_norm,
                                 q_norms.view({models(), -1}).amax(1)},
                                1);
  if (collective_ != nullptr) collective_->average(report);
  return report;
}

std::vector<StepReport> Iql::read_report(const at::Tensor& report) const {
  const at::Tensor values = report.to(at::kCPU, at::kDouble);
  require_finite("loss or gradient", values, steps_done_ - 1);
  std::vector<StepReport> reports;
  for (int64_t m = 0; m < models(); ++m) {
    const double* row = values.const_data_ptr<double>() + 6 * m;
    reports.push_back({row[0], row[1], row[2], row[3], row[3] - row[2], row[4], row[5],
                       learning_rate_at(config(m), steps_done_ - 1, config(m).steps)});
  }
  return reports;
}

// Q_target(s, a), heads joined: [M, B].
at::Tensor Iql::target_values(const at::Tensor& state, const at::Tensor& action,
                              const at::Tensor& task) const {
  const at::Tensor heads =
      values_of(config(), target_.forward(select_inputs(target_.shape(), state, action, task)));
  if (config().heads == 1) return heads;
  const at::Tensor by_model = heads.view({models(), config().heads, -1});
  return config().head_aggregate == "min" ? by_model.amin(1) : by_model.mean(1);
}

at::Tensor Iql::regression_target(const Batch& batch) const {
  if (config().q_target == "monte-carlo" || config().q_target == "outcome") return batch.outcome;
  if (config().q_target == "sarsa")
    return batch.reward + batch.discount * target_values(batch.next_state, batch.next_action, batch.task);
  return batch.reward + batch.discount * v_values(batch.next_state, batch.task);
}

// [M, B] as [M K, B]: what all heads of a model share.
at::Tensor Iql::per_head(const at::Tensor& values) const {
  return config().heads == 1 || models() == 1 ? values : values.repeat_interleave(config().heads, 0);
}

// Leaves the gradient of Q's loss in q_; returns the loss of every head.
at::Tensor Iql::regress_q(const Batch& batch, const at::Tensor& target) {
  Tape tape;
  const at::Tensor outputs = q_.forward(select_inputs(q_.shape(), batch.state, batch.action, batch.task),
                                        dropout_for(1, batch.first_row), tape);
  const at::Tensor y = per_head(target);
  Loss loss;
  if (config().value_loss == "hl-gauss") {
    loss = histogram_loss(outputs, y, batch.weight);
  } else {
    const at::Tensor scalar = outputs.squeeze(2);
    loss = config().value_loss == "bce" ? binary_loss(scalar, y, batch.weight)
                                        : squared_loss(scalar, y, batch.weight);
    loss.grad = loss.grad.unsqueeze(2);
  }
  q_.backward(tape, loss.grad);
  if (config().conservative > 0)
    add_conservative(batch.candidates, dropout_for(2, batch.candidates.first_row));
  if (config().ranking > 0 && batch.pairs.state.defined())
    add_ranking(batch.pairs, dropout_for(3, 2 * batch.pairs.first_row));
  return loss.value;
}

void Iql::add_conservative(const Batch::Candidates& candidates, const Dropout& dropout) {
  Tape tape;
  const at::Tensor outputs = q_.forward(
      select_inputs(q_.shape(), candidates.state, candidates.action, candidates.task), dropout, tape);
  const Loss loss = conservative_loss(values_of(config(), outputs), candidates.group, candidates.chosen);
  q_.backward(tape, through_values(config(), outputs, loss.grad * config().conservative),
              /*accumulate=*/true);
}

void Iql::add_ranking(const Batch::Pairs& pairs, const Dropout& dropout) {
  Tape tape;
  // Each pair in two rows, one after the other: a process' share of the pairs is then a range of rows.
  const auto side_by_side = [](const at::Tensor& a, const at::Tensor& b) {
    return at::stack({a, b}, 1).flatten(0, 1);
  };
  const at::Tensor state = side_by_side(pairs.state, pairs.state),
                   task = side_by_side(pairs.task, pairs.task);
  const at::Tensor action = side_by_side(pairs.better, pairs.worse);
  const at::Tensor outputs = q_.forward(select_inputs(q_.shape(), state, action, task), dropout, tape);
  const at::Tensor values = values_of(config(), outputs).unflatten(1, {-1, 2});
  const at::Tensor grad = ranking_loss(values.select(2, 0), values.select(2, 1)).grad * config().ranking;
  q_.backward(tape, through_values(config(), outputs, at::stack({grad, -grad}, 2).flatten(1, 2)),
              /*accumulate=*/true);
}

void Iql::average_gradients(Network& network) {
  if (collective_ != nullptr) collective_->average(network.gradients());
}

void Iql::update_target() {
  if (config().polyak > 0) {
    for (int64_t m = 0; m < models(); ++m) {
      const int64_t heads = config().heads;
      target_.parameters()
          .narrow(0, m * heads, heads)
          .lerp_(q_.parameters().narrow(0, m * heads, heads), config(m).polyak);
    }
  } else if (steps_done_ % config().target_period == 0) {
    target_.parameters().copy_(q_.parameters());
  } else {
    return;
  }
  target_changed();
}

void Iql::target_changed() {
  target_.parameters_changed();
  if (device().is_cpu() && config().polyak == 0 &&
      target_.is_worth_folding(config().target_period * config().batch_size))
    target_.fold();
}

Dropout Iql::dropout_for(uint64_t pass, int64_t first_row) const {
  Dropout dropout{config().dropout, {}, first_row};
  for (const IqlConfig& each : configs_)
    dropout.keys.push_back(
        draw_key(static_cast<uint64_t>(each.seed), Draw::kDropout, static_cast<uint64_t>(steps_done_), pass));
  return dropout;
}

at::Tensor Iql::q_values(const at::Tensor& state, const at::Tensor& action, const at::Tensor& task) const {
  return values_of(config(), q_.forward(select_inputs(q_.shape(), state, action, task)));
}

at::Tensor Iql::v_values(const at::Tensor& state, const at::Tensor& task) const {
  return v_.forward(select_inputs(v_.shape(), state, {}, task)).squeeze(2);
}

}  // namespace boq::iql
