// Every register width, whatever this machine has: the compiler makes wide vectors of narrow ones.
#include "native/core/simd.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "doctest/doctest.h"

namespace {

using boq::simd::Lanes;

std::vector<float> ramp(int64_t count, float from, float step) {
  std::vector<float> values;
  for (int64_t i = 0; i < count; ++i) values.push_back(from + step * static_cast<float>(i));
  return values;
}

TEST_CASE_TEMPLATE("SIMD: loads, sums and picks the largest", V, Lanes<4>, Lanes<8>, Lanes<16>) {
  const auto values = ramp(V::kLanes, -3, 0.5f);
  CHECK(V::sum(V::load(values.data())) ==
        doctest::Approx(static_cast<double>(V::kLanes) * (values.front() + values.back()) / 2));
  CHECK(V::largest(V::load(values.data())) == values.back());
  CHECK(V::largest(V::min(V::load(values.data()), V::splat(-2.5f))) == -2.5f);
  std::vector<int16_t> integers(static_cast<size_t>(V::kLanes), -32767);
  CHECK(V::sum(V::load(integers.data())) == -32767.0f * static_cast<float>(V::kLanes));
  const auto some = V::load_some(values.data(), 3, -9.0f);
  CHECK(V::sum(some) == doctest::Approx(-3 - 2.5 - 2 - 9.0 * static_cast<double>(V::kLanes - 3)));
}

TEST_CASE_TEMPLATE("SIMD: e^x is exact to two units in the last place", V, Lanes<4>, Lanes<8>, Lanes<16>) {
  for (float x = -86; x < 87; x += 0.37f) {
    const auto inputs = ramp(V::kLanes, x, 0.011f);
    std::vector<float> results(inputs.size());
    V::store(results.data(), V::exp(V::load(inputs.data())));
    for (size_t i = 0; i < inputs.size(); ++i) {
      const double expected = std::exp(static_cast<double>(inputs[i]));
      CHECK(std::abs(results[i] - expected) <= expected * 2 * std::numeric_limits<float>::epsilon());
    }
  }
  CHECK(V::sum(V::exp(V::splat(-1000.0f))) < 1e-30f);
}

TEST_CASE_TEMPLATE("SIMD: bfloat16 is rounded as c10 rounds it", V, Lanes<4>, Lanes<8>, Lanes<16>) {
  auto values = ramp(V::kLanes, -1.003f, 0.1037f);
  values[0] = 1.00390625f;  // half way between two neighbours, to the even one
  values[1] = 1.01171875f;
  values[2] = std::numeric_limits<float>::quiet_NaN();
  values[3] = std::numeric_limits<float>::infinity();
  std::vector<c10::BFloat16> stored(values.size());
  V::store(stored.data(), V::load(values.data()));
  std::vector<float> loaded(values.size());
  V::store(loaded.data(), V::load(stored.data()));
  for (size_t i = 0; i < values.size(); ++i) {
    if (i == 2) {
      CHECK(std::isnan(loaded[i]));
      continue;
    }
    CHECK(stored[i].x == c10::BFloat16(values[i]).x);
    CHECK(loaded[i] == static_cast<float>(stored[i]));
  }
  V::store(loaded.data(), V::template rounded<c10::BFloat16>(V::load(values.data())));
  CHECK(loaded[0] == 1.0f);
  std::vector<c10::BFloat16> partly(values.size(), c10::BFloat16(7.0f));
  V::store_some(partly.data(), V::load(values.data()), 2);
  CHECK(partly[1].x == stored[1].x);
  CHECK(static_cast<float>(partly[2]) == 7.0f);
}

}  // namespace
