// Implicit Q-Learning (arXiv 2110.06169) as Best-of-Q trains it: the whole algorithm is Iql::step() in
// iql.cpp.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "native/iql/config.h"
#include "native/iql/networks.h"
#include "native/iql/optimizer.h"

namespace boq::iql {

/// Rows of one step. B transitions; every embedding tensor is [B, E] and ready for the networks
/// (standardised).
struct Batch {
  at::Tensor state;
  at::Tensor action;
  at::Tensor task;
  at::Tensor next_state;   ///< zeros where there is none
  at::Tensor next_action;  ///< sarsa only: the action taken next, zeros where there is none
  at::Tensor reward;       ///< [1, B]
  at::Tensor discount;     ///< [1, B]: gamma, or 0 where nothing follows
  at::Tensor outcome;      ///< [1, B]: target of monte-carlo and outcome; undefined otherwise
  at::Tensor mask;         ///< [K, B], 1 where a head learns from a transition; undefined: all heads from all

  /// conservative only: every candidate of the batch's steps.
  struct Candidates {
    at::Tensor state, action, task;  ///< [C, E]
    at::Tensor group;                ///< int64 [C]: row of the batch
    at::Tensor chosen;               ///< int64 [B]: row of the executed candidate
  } candidates;

  /// ranking only: two actions of one state each, the first with the better return.
  struct Pairs {
    at::Tensor state, task, better, worse;  ///< [R, E]
  } pairs;
};

struct StepReport {
  double loss_v = 0, loss_q = 0;                 ///< mean over heads
  double v_mean = 0, q_mean = 0, advantage = 0;  ///< q: of the target network; advantage: q - v
  double v_norm = 0, q_norm = 0;                 ///< gradients' norms before clipping; q: the largest head's
  double learning_rate = 0;
};

/// Which inputs a network takes of the three streams, in this order.
std::vector<at::Tensor> select_inputs(const NetworkShape& shape, const at::Tensor& state,
                                      const at::Tensor& action, const at::Tensor& task);

NetworkShape q_shape(const IqlConfig& config, int64_t width);
NetworkShape v_shape(const IqlConfig& config, int64_t width);

/// Values of the network's outputs [K, B, outputs]: themselves (mse), their sigmoid (bce), the mean of their
/// distribution (hl-gauss). Returns [K, B].
at::Tensor values_of(const IqlConfig& config, const at::Tensor& outputs);

class Iql {
 public:
  Iql(const IqlConfig& config, int64_t width, at::Device device);

  /// One gradient step. Throws BOQ_NOT_FINITE before any parameter changes where a loss or a gradient is not
  /// finite.
  StepReport step(const Batch& batch);

  int64_t steps_done() const { return steps_done_; }
  void set_steps_done(int64_t steps) { steps_done_ = steps; }
  const IqlConfig& config() const { return config_; }

  Network& q() { return q_; }
  Network& v() { return v_; }
  Network& target() { return target_; }
  Adam& q_adam() { return q_adam_; }
  Adam& v_adam() { return v_adam_; }
  const Network& q() const { return q_; }
  const Network& v() const { return v_; }

  /// To be called after the target network was written to.
  void target_changed();

  /// Online values without dropout: [K, n] and [n].
  at::Tensor q_values(const at::Tensor& state, const at::Tensor& action, const at::Tensor& task) const;
  at::Tensor v_values(const at::Tensor& state, const at::Tensor& task) const;

 private:
  at::Tensor target_values(const at::Tensor& state, const at::Tensor& action, const at::Tensor& task) const;
  at::Tensor regression_target(const Batch& batch) const;
  at::Tensor regress_q(const Batch& batch, const at::Tensor& y);
  void add_conservative(const Batch::Candidates& candidates, Dropout dropout);
  void add_ranking(const Batch::Pairs& pairs, Dropout dropout);
  void update_target();
  Dropout dropout_for(uint64_t pass) const;

  IqlConfig config_;
  Network q_, v_, target_;
  Adam q_adam_, v_adam_;
  int64_t steps_done_ = 0;
};

}  // namespace boq::iql
