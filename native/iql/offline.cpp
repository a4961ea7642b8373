#include "native/iql/offline.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace boq::iql {

double area_under_curve(std::span<const float> scores, std::span<const uint8_t> positive) {
  std::vector<size_t> order(scores.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return scores[a] < scores[b]; });
  double rank_sum = 0, positives = 0;
  for (size_t i = 0; i < order.size();) {
    size_t end = i;
    while (end < order.size() && scores[order[end]] == scores[order[i]]) ++end;
    const double rank =
        (static_cast<double>(i + 1) + static_cast<double>(end)) / 2;  // ties share their mean rank
    for (; i < end; ++i) {
      rank_sum += positive[order[i]] ? rank : 0;
      positives += positive[order[i]] ? 1 : 0;
    }
  }
  const double negatives = static_cast<double>(scores.size()) - positives;
  if (positives == 0 || negatives == 0) return std::numeric_limits<double>::quiet_NaN();
  return (rank_sum - positives * (positives + 1) / 2) / (positives * negatives);
}

Metrics quick_evaluation(const Iql& learner, const Transitions& data, const std::vector<int64_t>& held_out,
                         const Sampler& sampler, int64_t limit) {
  Metrics metrics;
  if (held_out.empty()) return metrics;
  const auto count = std::min<int64_t>(limit, static_cast<int64_t>(held_out.size()));
  std::vector<int64_t> sample;
  for (int64_t i = 0; i < count; ++i)
    sample.push_back(held_out[static_cast<size_t>(i * static_cast<int64_t>(held_out.size()) / count)]);
  const Batch batch = sampler.batch_of(sample, 0);
  const at::Tensor q = learner.q_values(batch.state, batch.action, batch.task).mean(0).cpu().contiguous();
  const at::Tensor v = learner.v_values(batch.state, batch.task).cpu().contiguous();
  std::vector<uint8_t> success;
  double squares = 0;
  for (size_t i = 0; i < sample.size(); ++i) {
    const auto t = static_cast<size_t>(sample[i]);
    const auto e = static_cast<size_t>(data.episode[t]);
    success.push_back(data.episode_success[e]);
    const double left = data.episode_steps[e] - 1 - data.step[t];
    const double value = success.back() ? std::pow(learner.config().gamma, left) : 0;
    squares += std::pow(q.const_data_ptr<float>()[i] - value, 2);
  }
  const auto add = [&](const char* name, double value) {
    if (std::isfinite(value)) metrics[name] = value;
  };
  add("validation/q_auc", area_under_curve({q.const_data_ptr<float>(), sample.size()}, success));
  add("validation/v_auc", area_under_curve({v.const_data_ptr<float>(), sample.size()}, success));
  add("validation/q_mse", squares / static_cast<double>(count));
  add("validation/q_mean", q.mean().item<double>());
  add("validation/v_mean", v.mean().item<double>());
  return metrics;
}

}  // namespace boq::iql
