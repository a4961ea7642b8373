// Which windows of a pack's images the vision tower must compute, and what the pack's features are put
// together from.
#pragma once

#include <string>
#include <vector>

#include "native/vlm/image.h"
#include "native/vlm/layout.h"
#include "native/vlm/reuse.h"
#include "native/vlm/vision.h"

namespace boq::vlm {

/// An image of a pack, resized.
struct PreparedImage {
  Grid grid;
  WindowOrder order;
  RgbImage pixels;
};

struct VisionPlan {
  VisionInput input;
  /// Of each image of the pack: its features where they are known, else its place among the computed images.
  struct Source {
    at::Tensor known;
    size_t computed = 0;
  };
  std::vector<Source> images;
  /// What is computed, as the caches name it; empty where it shall not be kept.
  std::vector<std::string> image_keys, window_keys;
};

/// `reuse` may be null: then everything is computed.
VisionPlan plan_vision(const std::vector<PreparedImage>& images, const VisionConfig& config,
                       const NormalizeTable& normalize, Reuse* reuse);

/// The features of all images of the pack, one after the other; keeps what was computed.
at::Tensor finish_vision(const VisionPlan& plan, const VisionOutput& output, const VisionConfig& config,
                         Reuse* reuse);

}  // namespace boq::vlm
