#include "native/iql/standardiser.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>

#include "native/core/error.h"
#include "native/iql/kernels.h"

namespace boq::iql {

at::Tensor Standardiser::apply(const at::Tensor& rows) const {
  if (is_identity()) return rows;
  const at::Tensor scaled = (rows - mean.to(rows.device())) / std.to(rows.device());
  return clip > 0 ? scaled.clamp(-clip, clip) : scaled;
}

Moments::Moments(int64_t width)
    : origin_(static_cast<size_t>(width)), sum_(origin_.size()), squares_(origin_.size()) {}

void Moments::add(const void* row, at::ScalarType dtype, int64_t weight) {
  const auto width = static_cast<int64_t>(origin_.size());
  if (total_ == 0) {  // moments about a typical row lose no digits
    std::vector<float> values(origin_.size());
    copy_row(row, dtype, values.data(), at::kFloat, width, {});
    std::copy(values.begin(), values.end(), origin_.begin());
  }
  add_moments(row, dtype, width, static_cast<double>(weight), origin_.data(), sum_.data(), squares_.data());
  total_ += static_cast<double>(weight);
}

Standardiser Moments::standardiser(double clip) const {
  const auto width = static_cast<int64_t>(origin_.size());
  Standardiser result{at::zeros({width}, at::kFloat), at::ones({width}, at::kFloat), clip};
  for (size_t j = 0; j < origin_.size() && total_ > 0; ++j) {
    const double shift = sum_[j] / total_;
    const double deviation = std::sqrt(std::max(0.0, squares_[j] / total_ - shift * shift));
    BOQ_CHECK(std::isfinite(shift) && std::isfinite(deviation), ErrorCode::kNotFinite,
              "expected finite vectors to train on, but dimension ", j,
              " of some row is not; embed the run again");
    const double mean = origin_[j] + shift;
    result.mean.mutable_data_ptr<float>()[j] = static_cast<float>(mean);
    // Below this a dimension is constant up to rounding, and dividing by it would only blow the rounding up.
    if (deviation > 1e-6 * std::max(1.0, std::abs(mean)))
      result.std.mutable_data_ptr<float>()[j] = static_cast<float>(deviation);
  }
  return result;
}

}  // namespace boq::iql
