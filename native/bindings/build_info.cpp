#include "native/bindings/build_info.h"

#include <ATen/Context.h>
#include <ATen/Version.h>
#include <torch/version.h>

#include <string>

#include "native/bindings/napi_setup.h"
#include "native/core/device.h"

namespace boq::bindings {
namespace {

// The CUDA runtime's version number is 1000 * major + 10 * minor.
Json cuda_version() {
  if (!at::Context::hasCUDA()) return nullptr;
  const long version = at::Context::versionCUDART();
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

}  // namespace

Json build_info() {
  Json devices = Json::array();
  for (int i = 0; i < cuda_device_count(); ++i) devices.push_back("cuda:" + std::to_string(i));
  return {
      {"version", BOQ_VERSION},
      {"torch", TORCH_VERSION},
#ifdef BOQ_WITH_CUDA
      {"variant", "cuda"},
#else
      {"variant", "cpu"},
#endif
      {"cuda", cuda_version()},
      {"cudaAvailable", cuda_problem().empty()},
      {"cudaProblem", cuda_problem()},
      {"cudaDevices", devices},
      {"cpuCapability", at::get_cpu_capability()},
      {"bf16", has_cpu_bf16()},
      {"threads", cpu_share()},
      {"napi", NAPI_VERSION},
      {"compiler", __VERSION__},
  };
}

}  // namespace boq::bindings
