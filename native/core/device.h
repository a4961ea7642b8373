// Which device a job runs on, and how much of the processor belongs to this process.
#pragma once

#include <c10/core/Device.h>

#include <string>
#include <vector>

namespace boq {

/// auto (CUDA where it works, else CPU) | cpu | cuda | cuda:N. Throws BOQ_INVALID_ARGUMENT for anything else
/// and BOQ_CUDA_UNAVAILABLE, with the reason, where CUDA was asked for and cannot be had: never a silent
/// fallback.
c10::Device parse_device(const std::string& text);

/// Why CUDA cannot be used; empty where it can.
std::string cuda_problem();
int cuda_device_count();

/// Processors this process may use: the smaller of its affinity mask and its control group's CPU quota (v1 or
/// v2, every level up to the root), at least 1. OMP_NUM_THREADS, where set, wins.
int cpu_share();

/// True where bfloat16 matrix products have instructions of their own (AVX512-BF16, AMX).
bool has_cpu_bf16();

/// The part of cpu_share() that reads control groups, with the roots as parameters so that it can be tested:
/// CPUs granted by the quota, or 0 where none is set.
double cgroup_cpu_quota(const std::string& proc_self_cgroup, const std::string& cgroup_root);

}  // namespace boq
