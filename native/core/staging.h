// From the host to a device, without waiting: through pinned memory, which libtorch's allocator hands out
// again when the transfers from it have ended.
#pragma once

#include <ATen/core/Tensor.h>

namespace boq {

/// On the CPU `tensor` itself; else a copy on `device` that is under way.
at::Tensor upload(const at::Tensor& tensor, const at::Device& device);

/// target = source, converted to the type of `target`, which is contiguous. To a device in pieces, so that
/// reading the next one from a mapped file overlaps the transfer of the last, and no transfer waits for a
/// page fault.
void stage(const at::Tensor& target, const at::Tensor& source);

}  // namespace boq
