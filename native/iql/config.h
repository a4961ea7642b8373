// Every hyper-parameter of training, what it means and where its value comes from. "Paper" is Best-of-Q
// (arXiv 2601.22701); "IQL" is arXiv 2110.06169. Ranges are checked in config.cpp, in one table.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "native/core/json.h"

namespace boq::iql {

/// What the automatic settings are derived from.
struct DataFacts {
  int64_t transitions = 0;  ///< in the training split
  double success_rate = 0;  ///< of its episodes
};

struct IqlConfig {
  /// `paper`: the paper's numbers to the letter. `default`: what measurement recommends.
  std::string preset = "default";
  /// Of initialisation, sampling, dropout and shuffling.
  int64_t seed = 0;

  // The run.
  /// Gradient steps. paper: 50,000 (B.1's "epochs"); default: 20 passes over the data, at least 1,500.
  int64_t steps = 50000;
  /// Transitions of one step, drawn uniformly with replacement. Paper B.1: 128.
  int64_t batch_size = 128;

  // The algorithm.
  /// Discount of one step. Paper B.1: 0.99.
  double gamma = 0.99;
  /// Expectile of V. Paper B.1: 0.8 where over 80 % of the episodes succeed, else 0.7; default: 0.7 from 60 %
  /// on, else 0.6 (on data of 40 % success 0.5 to 0.7 chose better than 0.8 and 0.9).
  double tau = 0.7;
  /// What Q is regressed on. td: r + gamma V(s') (IQL). sarsa: r + gamma Q_target(s', a') of the action taken
  /// next. monte-carlo: the discounted return that followed. outcome: 1 where the episode succeeded.
  std::string q_target = "td";
  /// Of Q. mse: the paper's. bce: cross-entropy of sigmoid(Q) with the target. hl-gauss: cross-entropy over
  /// bins (arXiv 2403.03950); Q is the mean of the distribution.
  std::string value_loss = "mse";
  /// Bins of hl-gauss over [-0.1, 1.1].
  int64_t bins = 51;
  /// A limit ends the record, not the task: bootstrap from V(s') there. Off: a limit is a failure.
  bool bootstrap_timeouts = false;
  /// Weight of log sum exp Q over the step's candidates minus Q of the chosen one (CQL, arXiv 2006.04779). 0:
  /// none.
  double conservative = 0;
  /// Weight of the logistic loss on Q(better) - Q(worse) where a state was met with actions of unequal
  /// return. 0: none.
  double ranking = 0;

  // The target network.
  /// Steps between two copies of Q into it. Paper B.1: 100; default: 500 copies a run, between 10 and 100
  /// steps, since a copy carries reward back by about one step of an episode.
  int64_t target_period = 100;
  /// Above 0: a moving average with this rate instead of copies (IQL: 0.005).
  double polyak = 0;

  // The heads of Q: independent networks.
  int64_t heads = 1;
  /// How V's target joins the heads: min or mean.
  std::string head_aggregate = "min";
  /// Chance of a transition to belong to a head, fixed for the run (bootstrap masks). 1: every head sees all.
  double head_share = 1;

  // The networks (paper B.2).
  int64_t projection = 1024;
  std::vector<int64_t> hidden = {1024, 1024, 512, 256, 128, 64};
  /// After each hidden layer, in the pass that is differentiated. The paper names no rate; 0.1 is IQL's only
  /// one.
  double dropout = 0.1;
  bool use_state = true;
  bool use_action = true;
  bool use_task = true;
  /// Q also sees the product of action and task, dimension by dimension: what of the task the action is
  /// about. Not in the paper.
  bool use_match = false;

  // The optimizer.
  /// Of both networks, at the start. Paper B.1: 3e-4.
  double learning_rate = 3e-4;
  /// cosine: to 0 over the run (paper B.1). constant.
  std::string schedule = "cosine";
  /// adam: weight decay as L2 in the gradient (the paper's words). adamw: decoupled.
  std::string optimizer = "adam";
  double weight_decay = 1e-4;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  /// Largest gradient norm of each network (paper B.1: 1.0). 0: no limit.
  double gradient_clip = 1.0;

  // The inputs.
  /// Zero mean and unit variance of every dimension of every stream, by the training split. paper: off.
  bool standardise = true;
  /// Largest standardised value. 0: no limit.
  double standardise_clip = 6;
  /// Share of tasks' episodes kept out of training.
  double validation_fraction = 0.1;
  /// A control: outcomes dealt out anew among the training episodes.
  bool shuffle_rewards = false;
  /// Train although every episode succeeded, or none did.
  bool allow_single_outcome = false;

  // The machine.
  /// Of matrix products: float32 | bfloat16 (master weights stay float32) | auto, resolved before the run.
  std::string precision = "auto";
  /// Steps between checkpoints.
  int64_t checkpoint_every = 1000;
  /// Steps between measurements on the validation split. 0: only at the end. Default: ten a run.
  int64_t evaluate_every = 0;
  /// At the end, compare Q with a small Monte-Carlo regressor on the same features (offline.json).
  bool regressor = true;
  /// Keep checkpoint/ after a finished run.
  bool keep_checkpoint = false;
};

/// The preset that `options` names, what it leaves open derived from `facts`, overlaid with `options`
/// (camelCase keys; null means: automatic). Throws BOQ_CONFIG_INVALID for an unknown key (naming the
/// nearest), a wrong type, a value out of range, and settings that contradict each other.
IqlConfig resolve_config(const Json& options, const DataFacts& facts);

/// The keys of `options` that need no data, checked as resolve_config() does: validationFraction and the like
/// decide what the data facts are.
double validation_fraction_of(const Json& options);

Json config_to_json(const IqlConfig& config);

}  // namespace boq::iql
