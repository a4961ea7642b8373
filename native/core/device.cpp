#include "native/core/device.h"

#include <ATen/Context.h>
#include <ATen/detail/CUDAHooksInterface.h>
#include <sched.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "native/core/error.h"

namespace boq {

int cuda_device_count() {
  return at::hasCUDA() ? static_cast<int>(at::detail::getCUDAHooks().getNumGPUs()) : 0;
}

std::string cuda_problem() {
#ifndef BOQ_WITH_CUDA
  return "this libtorch is built for the CPU only; set up the CUDA variant (see third_party/README.md)";
#else
  if (!at::hasCUDA()) return "libtorch finds no CUDA driver on this machine";
  if (cuda_device_count() == 0) return "the CUDA driver shows no device (CUDA_VISIBLE_DEVICES may hide it)";
  return "";
#endif
}

c10::Device parse_device(const std::string& text) {
  if (text == "cpu") return c10::Device(c10::kCPU);
  if (text == "auto") return cuda_problem().empty() ? c10::Device(c10::kCUDA, 0) : c10::Device(c10::kCPU);
  int index = 0;
  if (text != "cuda") {
    const auto digits = text.rfind("cuda:", 0) == 0 ? text.substr(5) : "";
    const bool is_number =
        !digits.empty() && digits.size() <= 3 &&
        std::all_of(digits.begin(), digits.end(), [](char c) { return c >= '0' && c <= '9'; });
    BOQ_CHECK(is_number, ErrorCode::kInvalidArgument, "device '", text,
              "': expected auto, cpu, cuda or cuda:N");
    index = std::stoi(digits);
  }
  const auto problem = cuda_problem();
  BOQ_CHECK(problem.empty(), ErrorCode::kCudaUnavailable, "device '", text, "': ", problem);
  BOQ_CHECK(index < cuda_device_count(), ErrorCode::kCudaUnavailable, "device '", text,
            "': this machine has ", cuda_device_count(), " CUDA device(s), numbered from 0");
  return c10::Device(c10::kCUDA, static_cast<c10::DeviceIndex>(index));
}

namespace {

std::string first_line(const std::filesystem::path& path) {
  std::string line;
  std::ifstream stream(path);
  std::getline(stream, line);
  return line;
}

/// Quota of one group in CPUs, 0 where none is set or the file is absent.
double quota_v2(const std::filesystem::path& group) {
  const auto line = first_line(group / "cpu.max");
  char* rest = nullptr;
  const double quota = std::strtod(line.c_str(), &rest);
  if (rest == line.c_str()) return 0;  // "max 100000", or no such file
  const double period = std::strtod(rest, nullptr);
  return quota > 0 && period > 0 ? quota / period : 0;
}

double quota_v1(const std::filesystem::path& group) {
  const double quota = std::atof(first_line(group / "cpu.cfs_quota_us").c_str());
  const double period = std::atof(first_line(group / "cpu.cfs_period_us").c_str());
  return quota > 0 && period > 0 ? quota / period : 0;
}

}  // namespace

double cgroup_cpu_quota(const std::string& proc_self_cgroup, const std::string& cgroup_root) {
  double smallest = 0;
  const auto apply = [&](double quota) {
    if (quota > 0) smallest = smallest > 0 ? std::min(smallest, quota) : quota;
  };
  const auto walk_up = [&](const std::filesystem::path& base, std::filesystem::path group, auto quota_of) {
    group = group.relative_path();
    while (true) {
      apply(quota_of(base / group));
      if (group.empty()) break;
      group = group.parent_path();
    }
  };
  // Lines are "hierarchy:controllers:path"; "0::path" is version 2.
  std::ifstream stream(proc_self_cgroup);
  for (std::string line; std::getline(stream, line);) {
    const auto first = line.find(':');
    const auto second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const auto controllers = "," + line.substr(first + 1, second - first - 1) + ",";
    const std::filesystem::path group = line.substr(second + 1);
    if (controllers == ",,") {
      walk_up(cgroup_root, group, quota_v2);
    } else if (controllers.find(",cpu,") != std::string::npos) {
      walk_up(std::filesystem::path(cgroup_root) / "cpu", group, quota_v1);
    }
  }
  return smallest;
}

int cpu_share() {
  if (const char* given = std::getenv("OMP_NUM_THREADS")) {
    const int threads = std::atoi(given);
    if (threads > 0) return threads;
  }
  cpu_set_t mask;
  CPU_ZERO(&mask);
  int share = ::sched_getaffinity(0, sizeof mask, &mask) == 0 ? CPU_COUNT(&mask) : 1;
  const double quota = cgroup_cpu_quota("/proc/self/cgroup", "/sys/fs/cgroup");
  // Rounded down: a thread beyond the quota is throttled in the middle of a parallel region and all others
  // wait.
  if (quota > 0) share = std::min(share, static_cast<int>(quota));
  return std::max(share, 1);
}

bool has_cpu_bf16() {
#if defined(__x86_64__)
  return __builtin_cpu_supports("avx512bf16");  // every processor with AMX has it too
#else
  return false;
#endif
}

}  // namespace boq
