#include "native/iql/sampler.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <map>
#include <numeric>

#include "native/core/error.h"
#include "native/iql/random.h"

namespace boq::iql {
namespace {

// Discounted return that follows each transition, within its episode.
std::vector<float> discounted_returns(const Transitions& data, double gamma) {
  std::vector<float> returns(data.reward.size());
  double next = 0;
  for (size_t i = returns.size(); i-- > 0;) {
    next = data.reward[i] + (data.done[i] ? 0 : gamma * next);
    returns[i] = static_cast<float>(next);
  }
  return returns;
}

}  // namespace

Sampler::Sampler(const Transitions& data, std::vector<int64_t> training, Standardisers standardisers,
                 const IqlConfig& config, at::Device device, at::ScalarType dtype)
    : data_(data),
      training_(std::move(training)),
      standardisers_(std::move(standardisers)),
      config_(config),
      device_(device),
      dtype_(dtype) {
  if (config.q_target == "outcome")
    returns_ = discounted_returns(data, 1);
  else if (config.q_target == "monte-carlo" || config.ranking > 0)
    returns_ = discounted_returns(data, config.gamma);
  if (config.ranking > 0) find_pairs();
}

std::vector<int64_t> Sampler::indices(int64_t step) const {
  const uint64_t key =
      draw_key(static_cast<uint64_t>(config_.seed), Draw::kSample, static_cast<uint64_t>(step));
  std::vector<int64_t> chosen(static_cast<size_t>(config_.batch_size));
  for (size_t i = 0; i < chosen.size(); ++i)
    chosen[i] = training_[static_cast<size_t>(draw_index(key, i, static_cast<int64_t>(training_.size())))];
  return chosen;
}

void Sampler::set_share(int rank, int size) {
  BOQ_CHECK(config_.batch_size % size == 0, ErrorCode::kConfigInvalid, "batchSize ", config_.batch_size,
            " cannot be divided equally among ", size, " processes");
  rank_ = rank;
  size_ = size;
}

Batch Sampler::batch(int64_t step) const {
  const std::vector<int64_t> all = indices(step);
  const size_t count = all.size() / static_cast<size_t>(size_), first = static_cast<size_t>(rank_) * count;
  const auto mine = std::span(all).subspan(first, count);
  Batch batch = batch_of(mine);
  batch.first_row = static_cast<int64_t>(first);
  if (config_.head_share < 1) batch.weight = head_weights(all, mine);
  if (config_.conservative > 0) {
    batch.candidates = candidates_of(mine);
    for (const int64_t t : std::span(all).first(first))
      batch.candidates.first_row +=
          data_.candidate_offset[static_cast<size_t>(t) + 1] - data_.candidate_offset[static_cast<size_t>(t)];
  }
  if (config_.ranking > 0) add_pairs(batch, step);
  return batch;
}

// Bootstrap masks as weights: a head's loss is the mean over its transitions of the whole batch.
at::Tensor Sampler::head_weights(std::span<const int64_t> all, std::span<const int64_t> mine) const {
  const auto count = static_cast<int64_t>(mine.size());
  at::Tensor weight = at::empty({config_.heads, count}, at::kFloat);
  for (int64_t k = 0; k < config_.heads; ++k) {
    const uint64_t key = draw_key(static_cast<uint64_t>(config_.seed), Draw::kMask, static_cast<uint64_t>(k));
    const auto belongs = [&](int64_t t) {
      return draw_unit(key, static_cast<uint64_t>(t)) < config_.head_share;
    };
    const auto total = std::max<int64_t>(1, std::count_if(all.begin(), all.end(), belongs));
    // Processes average their gradients, so each counts its share `size` times.
    const float each = static_cast<float>(size_) / static_cast<float>(total);
    float* row = weight.mutable_data_ptr<float>() + k * count;
    for (size_t i = 0; i < mine.size(); ++i) row[i] = belongs(mine[i]) ? each : 0.0f;
  }
  return weight.to(device_);
}

at::Tensor Sampler::rows(const RowStore& store, const Standardiser& standardiser,
                         std::span<const int64_t> ids) const {
  return store.gather(ids, standardiser, dtype_).to(device_);
}

// What a batch holds besides rows.
Batch Sampler::numbers_of(std::span<const int64_t> transitions) const {
  const auto count = static_cast<int64_t>(transitions.size());
  const bool bootstraps = config_.q_target == "td" || config_.q_target == "sarsa";
  at::Tensor reward = at::empty({1, count}, at::kFloat), discount = at::empty({1, count}, at::kFloat),
             outcome;
  if (!bootstraps) outcome = at::empty({1, count}, at::kFloat);
  for (size_t i = 0; i < transitions.size(); ++i) {
    const auto t = static_cast<size_t>(transitions[i]);
    // Where a limit is bootstrapped there is no next action: sarsa's episode ends there all the same.
    const bool over_limit = config_.bootstrap_timeouts && data_.timeout[t] && config_.q_target != "sarsa";
    const bool goes_on = (!data_.done[t] || over_limit) && data_.next_state[t] >= 0;
    reward.mutable_data_ptr<float>()[i] = data_.reward[t];
    discount.mutable_data_ptr<float>()[i] = goes_on ? static_cast<float>(config_.gamma) : 0.0f;
    if (!bootstraps) outcome.mutable_data_ptr<float>()[i] = returns_[t];
  }
  Batch batch;
  batch.reward = reward.to(device_);
  batch.discount = discount.to(device_);
  if (!bootstraps) batch.outcome = outcome.to(device_);
  return batch;
}

Batch Sampler::numbers_of_all() const {
  std::vector<int64_t> all(static_cast<size_t>(data_.size()));
  std::iota(all.begin(), all.end(), 0);
  return numbers_of(all);
}

Batch Sampler::batch_of(std::span<const int64_t> transitions) const {
  std::vector<int64_t> state, action, task, next_state, next_action;
  for (const int64_t transition : transitions) {
    const auto t = static_cast<size_t>(transition);
    state.push_back(data_.state[t]);
    action.push_back(data_.action[t]);
    task.push_back(data_.task[t]);
    next_state.push_back(data_.next_state[t]);
    next_action.push_back(data_.done[t] ? -1 : data_.action[t + 1]);
  }
  Batch batch = numbers_of(transitions);
  batch.state = rows(data_.states, standardisers_.state, state);
  batch.action = rows(data_.actions, standardisers_.action, action);
  batch.task = rows(data_.tasks, standardisers_.task, task);
  if (!batch.outcome.defined()) batch.next_state = rows(data_.states, standardisers_.state, next_state);
  if (config_.q_target == "sarsa")
    batch.next_action = rows(data_.actions, standardisers_.action, next_action);
  return batch;
}

Batch::Candidates Sampler::candidates_of(std::span<const int64_t> transitions) const {
  std::vector<int64_t> state, action, task, group, chosen;
  for (size_t i = 0; i < transitions.size(); ++i) {
    const auto t = static_cast<size_t>(transitions[i]);
    chosen.push_back(static_cast<int64_t>(action.size()) + data_.chosen[t]);
    for (int64_t c = data_.candidate_offset[t]; c < data_.candidate_offset[t + 1]; ++c) {
      state.push_back(data_.state[t]);
      task.push_back(data_.task[t]);
      action.push_back(data_.candidate_action[static_cast<size_t>(c)]);
      group.push_back(static_cast<int64_t>(i));
    }
  }
  return {rows(data_.states, standardisers_.state, state), rows(data_.actions, standardisers_.action, action),
          rows(data_.tasks, standardisers_.task, task), at::tensor(group).to(device_),
          at::tensor(chosen).to(device_)};
}

// Of every state and task that was met with actions of different return, each action against the next better
// one of another row: at most one pair a transition, so that a state met often does not swamp the rest.
void Sampler::find_pairs() {
  std::map<std::pair<int64_t, int64_t>, std::vector<int64_t>> met;
  for (const int64_t t : training_) {
    const auto i = static_cast<size_t>(t);
    met[{data_.state[i], data_.task[i]}].push_back(t);
  }
  for (auto& [where, visits] : met) {
    const auto value = [&](int64_t t) { return returns_[static_cast<size_t>(t)]; };
    std::stable_sort(visits.begin(), visits.end(), [&](int64_t a, int64_t b) { return value(a) > value(b); });
    for (size_t i = 1; i < visits.size(); ++i) {
      for (size_t j = i; j-- > 0;) {
        const bool other =
            data_.action[static_cast<size_t>(visits[j])] != data_.action[static_cast<size_t>(visits[i])];
        if (other && value(visits[j]) > value(visits[i])) {
          pairs_.emplace_back(visits[j], visits[i]);
          break;
        }
      }
    }
  }
}

void Sampler::add_pairs(Batch& batch, int64_t step) const {
  if (pairs_.empty()) return;
  const uint64_t key =
      draw_key(static_cast<uint64_t>(config_.seed), Draw::kPair, static_cast<uint64_t>(step));
  std::vector<int64_t> state, task, better, worse;
  const int64_t count = config_.batch_size / size_;
  batch.pairs.first_row = rank_ * count;
  for (int64_t i = batch.pairs.first_row; i < (rank_ + 1) * count; ++i) {
    const auto& [winner, loser] = pairs_[static_cast<size_t>(
        draw_index(key, static_cast<uint64_t>(i), static_cast<int64_t>(pairs_.size())))];
    state.push_back(data_.state[static_cast<size_t>(winner)]);
    task.push_back(data_.task[static_cast<size_t>(winner)]);
    better.push_back(data_.action[static_cast<size_t>(winner)]);
    worse.push_back(data_.action[static_cast<size_t>(loser)]);
  }
  batch.pairs.state = rows(data_.states, standardisers_.state, state);
  batch.pairs.task = rows(data_.tasks, standardisers_.task, task);
  batch.pairs.better = rows(data_.actions, standardisers_.action, better);
  batch.pairs.worse = rows(data_.actions, standardisers_.action, worse);
}

}  // namespace boq::iql
