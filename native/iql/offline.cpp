#include "native/iql/offline.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include "native/iql/statistics.h"

namespace boq::iql {
namespace {

template <class T>
double mean_of(const std::vector<T>& values) {
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

Metrics quick_metrics(const HeldOut& values, const Transitions& data, double gamma) {
  Metrics metrics;
  if (values.transitions.empty()) return metrics;
  const Truth truth = truth_of(values, data, gamma);
  const auto add = [&](const char* name, double value) {
    if (std::isfinite(value)) metrics[name] = value;
  };
  double squares = 0;
  for (size_t i = 0; i < values.q.size(); ++i)
    squares += std::pow(static_cast<double>(values.q[i]) - truth.returns[i], 2);
  add("validation/q_auc", area_under_curve(values.q, truth.success));
  add("validation/v_auc", area_under_curve(values.v, truth.success));
  add("validation/q_mse", squares / static_cast<double>(values.q.size()));
  add("validation/q_mean", mean_of(values.q));
  add("validation/v_mean", mean_of(values.v));
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
