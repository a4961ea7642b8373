#include "native/iql/statistics.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace boq::iql {
namespace {

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

double brier_score(std::span<const float> scores, std::span<const uint8_t> positive) {
  double sum = 0;
  for (size_t i = 0; i < scores.size(); ++i)
    sum += std::pow(std::clamp(static_cast<double>(scores[i]), 0.0, 1.0) - positive[i], 2);
  return scores.empty() ? kNothing : sum / static_cast<double>(scores.size());
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

}  // namespace boq::iql
