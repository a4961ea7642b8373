#include "native/iql/held_out.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <map>
#include <span>
#include <utility>

namespace boq::iql {
namespace {

constexpr int64_t kChunk = 1024;

}  // namespace

std::vector<HeldOut> measure_held_out(const Iql& learner, const std::vector<int64_t>& held_out,
                                      const Transitions& data, const Sampler& sampler, bool with_candidates,
                                      int64_t limit) {
  std::vector<HeldOut> models(static_cast<size_t>(learner.models()));
  std::vector<int64_t> transitions;
  const auto total = static_cast<int64_t>(held_out.size()), count = std::min(limit, total);
  for (int64_t i = 0; i < count; ++i) transitions.push_back(held_out[static_cast<size_t>(i * total / count)]);
  for (HeldOut& values : models) values.transitions = transitions;
  const auto append = [](std::vector<float>& to, const at::Tensor& from) {
    const at::Tensor plain = from.cpu().contiguous();
    to.insert(to.end(), plain.const_data_ptr<float>(), plain.const_data_ptr<float>() + plain.numel());
  };
  // Of every model and head: [M, K, n].
  const auto q_of = [&](const at::Tensor& state, const at::Tensor& action, const at::Tensor& task) {
    return learner.q_values(state, action, task).view({learner.models(), learner.config().heads, -1});
  };
  for (int64_t first = 0; first < count; first += kChunk) {
    const auto chunk =
        std::span(transitions)
            .subspan(static_cast<size_t>(first), static_cast<size_t>(std::min(kChunk, count - first)));
    const Batch batch = sampler.batch_of(chunk);
    const at::Tensor q = q_of(batch.state, batch.action, batch.task),
                     v = learner.v_values(batch.state, batch.task);
    const Batch::Candidates offered = with_candidates ? sampler.candidates_of(chunk) : Batch::Candidates();
    const at::Tensor offered_q =
        with_candidates ? q_of(offered.state, offered.action, offered.task).mean(1) : at::Tensor();
    for (size_t m = 0; m < models.size(); ++m) {
      HeldOut& values = models[m];
      const auto model = static_cast<int64_t>(m);
      append(values.q, q[model].mean(0));
      append(values.spread, q[model].std(0, /*unbiased=*/false));
      append(values.v, v[model]);
      if (!with_candidates) continue;
      std::vector<float> all;
      append(all, offered_q[model]);
      auto at = all.begin();
      for (const int64_t t : chunk) {
        const auto i = static_cast<size_t>(t);
        const auto end = at + (data.candidate_offset[i + 1] - data.candidate_offset[i]);
        values.candidates.emplace_back(at, end);
        at = end;
      }
    }
  }
  return models;
}

Baselines measure_baselines(const Transitions& data, const Split& split, const Standardisers& standardisers,
                            const IqlConfig& config, at::Device device, bool with_regressor, int64_t limit) {
  Baselines baselines;
  std::map<int32_t, std::pair<double, double>> by_step, by_task;  // successes, transitions
  const auto count = [&](int64_t t, auto&& f) {
    const auto i = static_cast<size_t>(t);
    const auto e = static_cast<size_t>(data.episode[i]);
    f(by_step[data.step[i]], by_task[data.episode_task[e]], data.episode_success[e] != 0);
  };
  for (const int64_t t : split.training) {
    count(t, [](auto& step, auto& task, bool success) {
      for (auto* place : {&step, &task}) {
        place->first += success;
        place->second += 1;
      }
    });
  }
  const auto rate = [&](const std::pair<double, double>& place) {
    return static_cast<float>(place.second == 0 ? split.training_success_rate : place.first / place.second);
  };
  // Its own settings throughout, so that models trained with others stand beside the same regressor.
  IqlConfig small;
  small.q_target = "monte-carlo";
  small.gamma = config.gamma;
  small.batch_size = config.batch_size;
  small.use_state = config.use_state;
  small.use_action = config.use_action;
  small.use_task = config.use_task;
  small.use_match = config.use_match;
  small.precision = config.precision;
  small.learning_rate = 1e-3;
  small.steps = with_regressor ? std::min<int64_t>(config.steps, 1000) : 0;
  small.projection = std::min<int64_t>(config.projection, 256);
  small.hidden = {std::min<int64_t>(config.hidden.front(), 256), std::min<int64_t>(config.hidden.back(), 64)};
  Iql learner(small, data.width, device);
  const Sampler sampler(data, split.training, standardisers, small, device, learner.q().input_dtype());
  for (int64_t step = 0; step < small.steps; ++step) learner.step(sampler.batch(step));
  baselines.regressor = measure_held_out(learner, split.validation, data, sampler, with_regressor, limit)[0];
  for (const int64_t t : baselines.regressor.transitions)
    count(t, [&](auto& step, auto& task, bool) {
      baselines.step_rate.push_back(rate(step));
      baselines.task_rate.push_back(rate(task));
    });
  if (!with_regressor) baselines.regressor = {};
  return baselines;
}

}  // namespace boq::iql
