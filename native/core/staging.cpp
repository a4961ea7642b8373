#include "native/core/staging.h"

#include <ATen/ATen.h>

#include <algorithm>

namespace boq {

namespace {

constexpr int64_t kPieceBytes = 64 << 20;

}  // namespace

at::Tensor upload(const at::Tensor& tensor, const at::Device& device) {
  if (device.is_cpu()) return tensor;
  return tensor.pin_memory().to(device, tensor.scalar_type(), /*non_blocking=*/true);
}

void stage(const at::Tensor& target, const at::Tensor& source) {
  if (target.is_cpu()) {
    target.copy_(source);
    return;
  }
  const auto from = source.contiguous().flatten(), to = target.view({-1});
  const auto piece = kPieceBytes / static_cast<int64_t>(target.element_size());
  const auto pinned_options = at::TensorOptions().dtype(target.scalar_type()).pinned_memory(true);
  for (int64_t first = 0; first < to.numel(); first += piece) {
    const auto count = std::min(piece, to.numel() - first);
    const auto pinned = at::empty({count}, pinned_options);
    pinned.copy_(from.narrow(0, first, count));
    to.narrow(0, first, count).copy_(pinned, /*non_blocking=*/true);
  }
}

}  // namespace boq
