// The vision tower: patch rows in window order to image features in raster order of the merged cells.
#pragma once

#include <vector>

#include "native/core/control.h"
#include "native/vlm/config.h"
#include "native/vlm/layout.h"
#include "native/vlm/ops.h"
#include "native/vlm/tap.h"

namespace boq::vlm {

/// The images of one pack, one after the other.
struct VisionInput {
  /// [patches, 3 * patch * patch] float32, window order within each image, one temporal slot.
  at::Tensor patches;
  /// [patches, 2] float32: patch row and column.
  at::Tensor positions;
  Segments windows;
  Segments images;
};

class VisionTower {
 public:
  VisionTower(const VisionConfig& config, const WeightScope& scope, const Compute& compute,
              const CancelFlag& cancel);

  /// Returns [patches / patches_per_cell, out_hidden_size] in the order of the input's merged cells.
  at::Tensor forward(const VisionInput& input, const CancelFlag& cancel, const TapSink& sink) const;

 private:
  struct Block {
    at::Tensor norm1, norm2;
    Linear qkv, proj, gate_up, down;
  };

  at::Tensor embed_patches(const at::Tensor& patches) const;

  VisionConfig config_;
  Compute compute_;
  Linear patch_embed_;
  at::Tensor frequencies_;
  std::vector<Block> blocks_;
  at::Tensor merger_norm_;
  Linear merger_first_, merger_second_;
};

}  // namespace boq::vlm
