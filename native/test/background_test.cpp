#include "native/core/background.h"

#include <ATen/Parallel.h>

#include <mutex>
#include <vector>

#include "doctest/doctest.h"
#include "native/core/error.h"
#include "native/test/expect_error.h"

using boq::run_in_background;
using boq::scheduling_slice;

TEST_CASE("background: the work and its OpenMP team ask for long turns, the caller does not") {
  const uint64_t before = scheduling_slice();
  // Kernels before 6.12 tell of none and ignore the request.
  const uint64_t expected = before == 0 ? 0 : boq::kBackgroundSlice;
  CHECK(before < boq::kBackgroundSlice);
  const int intra_op_threads = at::get_num_threads();
  at::set_num_threads(2);
  std::mutex mutex;
  std::vector<uint64_t> slices;
  run_in_background([&] {
    CHECK(at::get_num_threads() == 2);
    at::parallel_for(0, 2, 1, [&](int64_t, int64_t) {
      const std::lock_guard lock(mutex);
      slices.push_back(scheduling_slice());
    });
  });
  at::set_num_threads(intra_op_threads);
  REQUIRE(!slices.empty());
  CHECK(slices == std::vector<uint64_t>(slices.size(), expected));
  CHECK(scheduling_slice() == before);
}

TEST_CASE("background: what the work throws arrives at the caller") {
  boq::test::expect_error(boq::ErrorCode::kDataEmpty, "nothing here", [] {
    run_in_background([] { throw boq::Error(boq::ErrorCode::kDataEmpty, "nothing here"); });
  });
}
