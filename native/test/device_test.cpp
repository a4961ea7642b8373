#include "native/core/device.h"

#include <ATen/Parallel.h>

#include <filesystem>
#include <mutex>
#include <set>
#include <thread>

#include "doctest/doctest.h"
#include "native/test/expect_error.h"
#include "native/test/temporary_folder.h"

using boq::ErrorCode;
using boq::test::expect_error;

TEST_CASE("device: names are parsed, CUDA is never replaced silently") {
  CHECK(boq::parse_device("cpu").is_cpu());
  for (const char* text : {"", "gpu", "cuda:", "cuda:x", "cuda:-1", "cuda:1x", "cuda:9999", "CPU"}) {
    INFO(text);
    expect_error(ErrorCode::kInvalidArgument, "expected auto, cpu, cuda or cuda:N",
                 [&] { boq::parse_device(text); });
  }
  if (boq::cuda_problem().empty()) {
    CHECK(boq::parse_device("auto").is_cuda());
    CHECK(boq::parse_device("cuda:0").index() == 0);
    expect_error(ErrorCode::kCudaUnavailable, "numbered from 0", [] { boq::parse_device("cuda:900"); });
  } else {
    CHECK(boq::parse_device("auto").is_cpu());
    expect_error(ErrorCode::kCudaUnavailable, boq::cuda_problem(), [] { boq::parse_device("cuda:0"); });
    expect_error(ErrorCode::kCudaUnavailable, boq::cuda_problem(), [] { boq::parse_device("cuda"); });
  }
}

TEST_CASE("device: the CPU share is at least one thread") { CHECK(boq::cpu_share() >= 1); }

#if defined(__GNUC__) && !defined(__clang__)
TEST_CASE("device: our own loops run on the threads that torch is told to take") {
  const int before = at::get_num_threads();
  at::set_num_threads(2);
  std::mutex mutex;
  std::set<std::thread::id> threads;
  // Without OpenMP in our own files the loop would silently be one thread's.
  at::parallel_for(0, 2, 1, [&](int64_t, int64_t) {
    const std::lock_guard lock(mutex);
    threads.insert(std::this_thread::get_id());
  });
  at::set_num_threads(before);
  CHECK(threads.size() == 2);
}
#endif

TEST_CASE("device: the tightest quota on the way up to the root counts") {
  const boq::test::TemporaryFolder folder;
  const auto root = folder.path().string();
  const auto write = [&](const std::string& group, const std::string& name, const std::string& text) {
    std::filesystem::create_directories(folder / group);
    folder.write(group + "/" + name, text);
  };
  const auto quota = [&](const std::string& lines) {
    return boq::cgroup_cpu_quota(folder.write("self", lines).string(), root);
  };
  write("pods/a/b", "cpu.max", "max 100000\n");
  CHECK(quota("0::/pods/a/b\n") == 0);
  write("pods/a", "cpu.max", "250000 100000\n");
  CHECK(quota("0::/pods/a/b\n") == doctest::Approx(2.5));
  write("pods", "cpu.max", "400000 100000\n");
  CHECK(quota("0::/pods/a/b\n") == doctest::Approx(2.5));
  write("pods/a/b", "cpu.max", "150000 100000\n");
  CHECK(quota("0::/pods/a/b\n") == doctest::Approx(1.5));

  write("cpu/old/job", "cpu.cfs_quota_us", "300000\n");
  write("cpu/old/job", "cpu.cfs_period_us", "100000\n");
  write("cpu/old", "cpu.cfs_quota_us", "-1\n");
  CHECK(quota("5:memory:/old\n4:cpu,cpuacct:/old/job\n") == doctest::Approx(3));
  CHECK(quota("") == 0);
  CHECK(quota("garbage\n0::/no/such/group\n") == 0);
}
