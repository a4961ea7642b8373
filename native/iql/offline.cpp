#include "native/iql/offline.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <numeric>

namespace boq::iql {
namespace {

constexpr double kNothing = std::numeric_limits<double>::quiet_NaN();
constexpr int64_t kChunk = 1024;

std::vector<size_t> rising_order(std::span<const float> values) {
  std::vector<size_t> order(values.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return values[a] < values[b]; });
  return order;
}

// Ranks from 1; equal values share their mean rank.
std::vector<double> ranks_of(std::span<const float> values) {
  const auto order = rising_order(values);
  std::vector<double> ranks(values.size());
  for (size_t i = 0; i < order.size();) {
    size_t end = i;
    while (end < order.size() && values[order[end]] == values[order[i]]) ++end;
    const double rank = (static_cast<double>(i + 1) + static_cast<double>(end)) / 2;
    for (; i < end; ++i) ranks[order[i]] = rank;
  }
  return ranks;
}

double mean_of(const std::vector<double>& values) {
  return values.empty()
             ? kNothing
             : std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

// A number, or null where there was nothing to measure: JSON has no NaN.
Json number(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }

// What the held-out transitions turned out to be.
struct Truth {
  std::vector<uint8_t> success;  // of the episode
  std::vector<float> returns;    // discounted
};

Truth truth_of(const HeldOut& values, const Transitions& data, double gamma) {
  Truth truth;
  for (const int64_t t : values.transitions) {
    const auto i = static_cast<size_t>(t);
    const auto e = static_cast<size_t>(data.episode[i]);
    truth.success.push_back(data.episode_success[e]);
    const double left = data.episode_steps[e] - 1 - data.step[i];
    truth.returns.push_back(static_cast<float>(truth.success.back() ? std::pow(gamma, left) : 0));
  }
  return truth;
}

// Groups of positions with the same state and task, visited more than once.
std::vector<std::vector<size_t>> revisits(const HeldOut& values, const Transitions& data) {
  std::map<std::pair<int64_t, int64_t>, std::vector<size_t>> visits;
  for (size_t i = 0; i < values.transitions.size(); ++i) {
    const auto t = static_cast<size_t>(values.transitions[i]);
    visits[{data.state[t], data.task[t]}].push_back(i);
  }
  std::vector<std::vector<size_t>> groups;
  for (auto& [where, group] : visits)
    if (group.size() > 1) groups.push_back(std::move(group));
  return groups;
}

// Of pairs of different actions tried in one state with different returns: how often `score` prefers the
// better.
double pairwise_accuracy(const std::vector<std::vector<size_t>>& groups, const HeldOut& values,
                         const Transitions& data, const Truth& truth, std::span<const float> score,
                         int64_t* pairs) {
  double right = 0;
  *pairs = 0;
  for (const auto& group : groups) {
    for (const size_t a : group) {
      for (const size_t b : group) {
        const bool same = data.action[static_cast<size_t>(values.transitions[a])] ==
                          data.action[static_cast<size_t>(values.transitions[b])];
        if (same || truth.returns[a] <= truth.returns[b]) continue;
        ++*pairs;
        right += score[a] > score[b] ? 1 : score[a] == score[b] ? 0.5 : 0;
      }
    }
  }
  return *pairs == 0 ? kNothing : right / static_cast<double>(*pairs);
}

double brier_score(std::span<const float> scores, std::span<const uint8_t> positive) {
  double sum = 0;
  for (size_t i = 0; i < scores.size(); ++i)
    sum += std::pow(std::clamp(static_cast<double>(scores[i]), 0.0, 1.0) - positive[i], 2);
  return scores.empty() ? kNothing : sum / static_cast<double>(scores.size());
}

// AUC within each step number, where both outcomes occur.
Json auc_by_step(const HeldOut& values, const HeldOut& regressor, const Transitions& data,
                 const Truth& truth) {
  std::map<int32_t, std::vector<size_t>> by_step;
  for (size_t i = 0; i < values.transitions.size(); ++i)
    by_step[data.step[static_cast<size_t>(values.transitions[i])]].push_back(i);
  Json rows = Json::array();
  for (const auto& [step, members] : by_step) {
    std::vector<uint8_t> success;
    for (const size_t i : members) success.push_back(truth.success[i]);
    const auto auc = [&](const std::vector<float>& scores) {
      std::vector<float> mine;
      for (const size_t i : members) mine.push_back(scores[i]);
      return number(area_under_curve(mine, success));
    };
    rows.push_back({{"step", step},
                    {"transitions", members.size()},
                    {"q", auc(values.q)},
                    {"v", auc(values.v)},
                    {"regressor", regressor.q.empty() ? Json(nullptr) : auc(regressor.q)}});
  }
  return rows;
}

// What argmax of Q would have picked.
Json picks_of(const HeldOut& values, const Transitions& data) {
  std::vector<int64_t> picks;
  int64_t overrides = 0, agreements = 0, decisions = 0;
  double gain = 0;
  for (size_t i = 0; i < values.candidates.size(); ++i) {
    const auto& q = values.candidates[i];
    if (q.size() < 2) continue;
    // The rule of best-of-q: scores closer than 1e-6 tie, and the earlier candidate wins.
    const float best = *std::max_element(q.begin(), q.end());
    const auto pick = static_cast<size_t>(
        std::find_if(q.begin(), q.end(), [&](float value) { return value >= best - 1e-6f; }) - q.begin());
    if (picks.size() < q.size()) picks.resize(q.size());
    ++picks[pick];
    ++decisions;
    overrides += pick != 0;
    agreements += static_cast<int64_t>(pick) == data.chosen[static_cast<size_t>(values.transitions[i])];
    gain += best - q[0];
  }
  const auto share = [&](int64_t count) {
    return number(decisions == 0 ? kNothing : static_cast<double>(count) / static_cast<double>(decisions));
  };
  Json by_index = Json::array();
  for (const int64_t count : picks) by_index.push_back(share(count));
  return {{"decisions", decisions},
          {"byIndex", by_index},
          {"overrideRate", share(overrides)},
          {"agreementWithExecuted", share(agreements)},
          {"meanGainOverFirst", number(decisions == 0 ? kNothing : gain / static_cast<double>(decisions))}};
}

}  // namespace

double area_under_curve(std::span<const float> scores, std::span<const uint8_t> positive) {
  const auto ranks = ranks_of(scores);
  double rank_sum = 0, positives = 0;
  for (size_t i = 0; i < ranks.size(); ++i) {
    if (!positive[i]) continue;
    rank_sum += ranks[i];
    positives += 1;
  }
  const double negatives = static_cast<double>(scores.size()) - positives;
  if (positives == 0 || negatives == 0) return kNothing;
  return (rank_sum - positives * (positives + 1) / 2) / (positives * negatives);
}

double rank_correlation(std::span<const float> a, std::span<const float> b) {
  const auto x = ranks_of(a), y = ranks_of(b);
  const double middle = (static_cast<double>(x.size()) + 1) / 2;
  double xy = 0, xx = 0, yy = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    xy += (x[i] - middle) * (y[i] - middle);
    xx += (x[i] - middle) * (x[i] - middle);
    yy += (y[i] - middle) * (y[i] - middle);
  }
  return xx == 0 || yy == 0 ? kNothing : xy / std::sqrt(xx * yy);
}

double calibration_error(std::span<const float> scores, std::span<const uint8_t> positive, int bins) {
  const auto order = rising_order(scores);
  double error = 0;
  for (int bin = 0; bin < bins; ++bin) {
    const size_t begin = order.size() * static_cast<size_t>(bin) / static_cast<size_t>(bins);
    const size_t end = order.size() * static_cast<size_t>(bin + 1) / static_cast<size_t>(bins);
    double sum = 0;
    for (size_t i = begin; i < end; ++i) sum += scores[order[i]] - static_cast<double>(positive[order[i]]);
    error += std::abs(sum);
  }
  return order.empty() ? kNothing : error / static_cast<double>(order.size());
}

std::vector<std::pair<double, double>> isotonic_fit(std::span<const float> scores,
                                                    std::span<const uint8_t> positive) {
  struct Block {
    double low, high, sum, count;
    double mean() const { return sum / count; }
  };
  std::vector<Block> blocks;
  for (const size_t i : rising_order(scores)) {
    const double score = scores[i], hit = positive[i] ? 1 : 0;
    if (!blocks.empty() && blocks.back().high == score) {  // one score has one chance
      blocks.back().sum += hit;
      blocks.back().count += 1;
    } else {
      blocks.push_back({score, score, hit, 1});
    }
    // Merging only when the next score begins would be the same; doing it at once keeps the invariant in one
    // place.
    while (blocks.size() > 1 && blocks[blocks.size() - 2].mean() >= blocks.back().mean()) {
      const Block last = blocks.back();
      blocks.pop_back();
      blocks.back() = {blocks.back().low, last.high, blocks.back().sum + last.sum,
                       blocks.back().count + last.count};
    }
  }
  std::vector<std::pair<double, double>> corners;
  for (const Block& block : blocks) {
    corners.emplace_back(block.low, block.mean());
    if (block.high > block.low) corners.emplace_back(block.high, block.mean());
  }
  return corners;
}

double isotonic_value(const std::vector<std::pair<double, double>>& corners, double score) {
  if (corners.empty()) return kNothing;
  const auto after = std::upper_bound(corners.begin(), corners.end(), score,
                                      [](double value, const auto& corner) { return value < corner.first; });
  if (after == corners.begin()) return corners.front().second;
  if (after == corners.end()) return corners.back().second;
  const auto [low, low_value] = *(after - 1);
  const auto [high, high_value] = *after;
  return low_value + (high_value - low_value) * (score - low) / (high - low);
}

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

Metrics quick_metrics(const HeldOut& values, const Transitions& data, double gamma) {
  Metrics metrics;
  if (values.transitions.empty()) return metrics;
  const Truth truth = truth_of(values, data, gamma);
  const auto add = [&](const char* name, double value) {
    if (std::isfinite(value)) metrics[name] = value;
  };
  const auto mean = [](const std::vector<float>& v) {
    return std::accumulate(v.begin(), v.end(), 0.0) / static_cast<double>(v.size());
  };
  double squares = 0;
  for (size_t i = 0; i < values.q.size(); ++i)
    squares += std::pow(static_cast<double>(values.q[i]) - truth.returns[i], 2);
  add("validation/q_auc", area_under_curve(values.q, truth.success));
  add("validation/v_auc", area_under_curve(values.v, truth.success));
  add("validation/q_mse", squares / static_cast<double>(values.q.size()));
  add("validation/q_mean", mean(values.q));
  add("validation/v_mean", mean(values.v));
  return metrics;
}

Json offline_report(const HeldOut& values, const Baselines& baselines, const Transitions& data,
                    double gamma) {
  if (values.transitions.empty()) return {{"transitions", 0}};
  const Truth truth = truth_of(values, data, gamma);
  const auto groups = revisits(values, data);
  std::vector<double> agreement;
  for (const auto& group : groups) {
    std::vector<float> q, returns;
    for (const size_t i : group) {
      q.push_back(values.q[i]);
      returns.push_back(truth.returns[i]);
    }
    const double correlation = rank_correlation(q, returns);
    if (group.size() > 2 && std::isfinite(correlation)) agreement.push_back(correlation);
  }
  std::vector<float> error;
  for (size_t i = 0; i < values.q.size(); ++i) error.push_back(std::abs(values.q[i] - truth.returns[i]));

  int64_t pairs = 0;
  const auto predictor = [&](std::span<const float> scores) {
    return Json{{"auc", number(area_under_curve(scores, truth.success))},
                {"brier", number(brier_score(scores, truth.success))},
                {"calibrationError", number(calibration_error(scores, truth.success))},
                {"pairwiseAccuracy", number(pairwise_accuracy(groups, values, data, truth, scores, &pairs))}};
  };
  Json report = {{"transitions", values.transitions.size()},
                 {"q", predictor(values.q)},
                 {"v", predictor(values.v)},
                 {"stepNumber", predictor(baselines.step_rate)},
                 {"task", predictor(baselines.task_rate)},
                 {"regressor", nullptr},
                 {"byStep", auc_by_step(values, baselines.regressor, data, truth)},
                 {"revisitedStates", groups.size()},
                 {"rankAgreementAtRevisited", number(mean_of(agreement))},
                 {"picks", picks_of(values, data)},
                 {"spreadAgainstError", number(rank_correlation(values.spread, error))}};
  report["pairs"] = pairs;
  if (!baselines.regressor.q.empty()) {
    report["regressor"] = predictor(baselines.regressor.q);
    report["regressor"]["picks"] = picks_of(baselines.regressor, data);
  }
  return report;
}

Json calibration_map(const HeldOut& values, const Transitions& data) {
  std::vector<uint8_t> success;
  for (const int64_t t : values.transitions)
    success.push_back(data.episode_success[static_cast<size_t>(data.episode[static_cast<size_t>(t)])]);
  Json q = Json::array(), chance = Json::array();
  for (const auto& [score, value] : isotonic_fit(values.q, success)) {
    q.push_back(score);
    chance.push_back(value);
  }
  return {{"kind", "isotonic"}, {"q", q}, {"success", chance}};
}

}  // namespace boq::iql
