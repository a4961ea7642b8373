// How well scores predict what happens: whether they order outcomes, whether they are the chances that they
// claim to be, and the map that makes them so. Plain functions of numbers; scores and outcomes are of equal
// length, an outcome is 1 (positive) or 0.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <utility>
#include <vector>

namespace boq::iql {

/// A figure where there is nothing to measure it on; `NaN` below.
inline constexpr double kNothing = std::numeric_limits<double>::quiet_NaN();

/// Chance that a random positive scores above a random negative, ties counted half. NaN where a class is
/// empty.
double area_under_curve(std::span<const float> scores, std::span<const uint8_t> positive);

/// Spearman's rank correlation, ties at their mean rank; NaN where one side is constant.
double rank_correlation(std::span<const float> a, std::span<const float> b);

/// Expected calibration error: mean |mean score - share of positives| over `bins` bins of equal size, by
/// rising score; NaN without scores.
double calibration_error(std::span<const float> scores, std::span<const uint8_t> positive, int bins = 10);

/// Mean squared difference of the scores, limited to [0, 1], and the outcomes; NaN without any.
double brier_score(std::span<const float> scores, std::span<const uint8_t> positive);

/// The non-decreasing step function of the scores with the smallest squared error (pool adjacent violators),
/// as its corners (score, chance): between corners it is interpolated, outside it is constant.
std::vector<std::pair<double, double>> isotonic_fit(std::span<const float> scores,
                                                    std::span<const uint8_t> positive);

}  // namespace boq::iql
