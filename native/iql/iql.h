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

/// Rows of one step: B transitions for each of M models. Every embedding tensor is [M, B, E], or [B, E] for a
/// single model, and ready for the networks (standardised).
struct Batch {
  at::Tensor state;
  at::Tensor action;
  at::Tensor task;
  at::Tensor next_state;   ///< zeros where there is none
  at::Tensor next_action;  ///< sarsa only: the action taken next, zeros where there is none
  at::Tensor reward;       ///< [M, B]
  at::Tensor discount;     ///< [M, B]: gamma, or 0 where nothing follows
  at::Tensor outcome;      ///< [M, B]: target of monte-carlo and outcome; undefined otherwise
  at::Tensor weight;       ///< [M K, B]: of a transition in a head's loss; undefined: 1 / B
  int64_t first_row = 0;   ///< number of row 0 within the batch of all processes

  /// conservative only, single models only: every candidate of the batch's steps.
  struct Candidates {
    at::Tensor state, action, task;  ///< [C, E]
    at::Tensor group;                ///< int64 [C]: row of the batch
    at::Tensor chosen;               ///< int64 [B]: row of the executed candidate
    int64_t first_row = 0;           ///< as in Batch
  } candidates;

  /// ranking only, single models only: two actions of one state each, the first with the better return.
  struct Pairs {
    at::Tensor state, task, better, worse;  ///< [R, E]
    int64_t first_row = 0;                  ///< as in Batch
  } pairs;
};

/// The batches of several single models as one. Throws where they hold candidates or pairs.
Batch join_batches(const std::vector<Batch>& batches);

struct StepReport {
  double loss_v = 0, loss_q = 0;                 ///< mean over heads
  double v_mean = 0, q_mean = 0, advantage = 0;  ///< q: of the target network; advantage: q - v
  double v_norm = 0, q_norm = 0;                 ///< gradients' norms before clipping; q: the largest head's
  double learning_rate = 0;
};

/// The inputs that a network takes, in its order: some of the three streams, and the match of action and
/// task, which is their product, dimension by dimension. `owner`, int64, names each action's row of state and
/// task; without it all have equal numbers of rows.
std::vector<at::Tensor> select_inputs(const NetworkShape& shape, const at::Tensor& state,
                                      const at::Tensor& action, const at::Tensor& task,
                                      const at::Tensor& owner = {});

NetworkShape q_shape(const IqlConfig& config, int64_t width);
NetworkShape v_shape(const IqlConfig& config, int64_t width);

/// Values of the network's outputs [K, B, outputs]: themselves (mse), their sigmoid (bce), the mean of their
/// distribution (hl-gauss). Returns [K, B].
at::Tensor values_of(const IqlConfig& config, const at::Tensor& outputs);

/// Whether two models can be trained in one batched run: equal in everything that shapes the computation.
/// They may differ in seed, tau, gamma, polyak, Adam's settings (not its kind), gradientClip and headShare.
bool can_share_run(const IqlConfig& a, const IqlConfig& b);

/// Averages over the processes of a data-parallel run. Implemented outside the core (native/tools), so that
/// the addon links no transport.
class Collective {
 public:
  virtual ~Collective() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;
  /// values := their mean over all processes, in place. All call it with equal shapes, in the same order.
  virtual void average(at::Tensor values) = 0;
};

/// M models trained side by side, each on batches of its own; M = 1 is the ordinary case. The K heads of
/// model m are heads m K to m K + K - 1 of the networks. A model comes out as it would alone.
class Iql {
 public:
  Iql(const IqlConfig& config, int64_t width, at::Device device) : Iql(std::vector{config}, width, device) {}
  /// Throws BOQ_CONFIG_INVALID where the models cannot share a run.
  Iql(const std::vector<IqlConfig>& configs, int64_t width, at::Device device);

  /// One gradient step of a single model, of all. Throws BOQ_NOT_FINITE before any parameter changes where a
  /// loss or a gradient is not finite.
  StepReport step(const Batch& batch) { return step_all(batch).at(0); }
  std::vector<StepReport> step_all(const Batch& batch);

  /// The step without waiting for the device: [M, 6] float32, loss_v, loss_q, v_mean, q_mean, v_norm, q_norm.
  /// Off the CPU a model whose loss or gradient is not finite stays as it was, and its row says so.
  at::Tensor advance(const Batch& batch);
  std::vector<StepReport> read_report(const at::Tensor& report) const;

  /// Gradients and reports become means over the processes; each gives its share of the batch.
  void set_collective(Collective* collective) { collective_ = collective; }

  int64_t steps_done() const { return steps_done_; }
  /// For steps that a captured graph took, and for the one that was only captured (-1).
  void count_step(int64_t by = 1);
  void set_steps_done(int64_t steps);
  int64_t models() const { return static_cast<int64_t>(configs_.size()); }
  const IqlConfig& config(int64_t model = 0) const { return configs_[static_cast<size_t>(model)]; }
  at::Device device() const { return q_.parameters().device(); }

  Network& q() { return q_; }
  Network& v() { return v_; }
  Network& target() { return target_; }
  Adam& q_adam() { return q_adam_; }
  Adam& v_adam() { return v_adam_; }
  const Network& q() const { return q_; }
  const Network& v() const { return v_; }

  /// To be called after the target network was written to.
  void target_changed();

  /// Online values without dropout: [M K, n] and [M, n].
  at::Tensor q_values(const at::Tensor& state, const at::Tensor& action, const at::Tensor& task) const;
  at::Tensor v_values(const at::Tensor& state, const at::Tensor& task) const;

  /// Where steps_done() says so, the target becomes a copy of Q or moves towards it. Apart from advance(),
  /// which a CUDA graph captures: what happens in some steps only must stay outside.
  void update_target();

 private:
  at::Tensor per_head(const at::Tensor& values) const;
  at::Tensor target_values(const at::Tensor& state, const at::Tensor& action, const at::Tensor& task) const;
  at::Tensor regression_target(const Batch& batch) const;
  at::Tensor regress_q(const Batch& batch, const at::Tensor& y);
  void add_conservative(const Batch::Candidates& candidates, const Dropout& dropout);
  void add_ranking(const Batch::Pairs& pairs, const Dropout& dropout);
  Dropout dropout_for(uint64_t pass, int64_t first_row) const;
  void average_gradients(Network& network);

  std::vector<IqlConfig> configs_;
  at::Tensor tau_;  // float64 [M, 1]
  Collective* collective_ = nullptr;
  Network q_, v_, target_;
  Adam q_adam_, v_adam_;
  int64_t steps_done_ = 0;
};

}  // namespace boq::iql
