// Named intermediate results for layer-by-layer comparison with the reference. Without a sink a tap costs one
// comparison.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <string>

namespace boq::vlm {

using TapSink = std::function<void(const std::string& name, const at::Tensor& value)>;

inline void tap(const TapSink& sink, const std::string& name, const at::Tensor& value) {
  if (sink) sink(name, value);
}

}  // namespace boq::vlm
