// The vision tower: patch rows in window order to image features in raster order of the merged cells.
#pragma once

#include <vector>

#include "native/core/control.h"
#include "native/vlm/config.h"
#include "native/vlm/layout.h"
#include "native/vlm/ops.h"
#include "native/vlm/tap.h"

namespace boq::vlm {

/// Rows of patches with their places.
struct PatchRows {
  /// [patches, 2] float32: patch row and column.
  at::Tensor positions;
  Segments windows;
};

/// The images of one pack, one after the other. The blocks before the first one with full attention see
/// nothing but windows, so equal windows are computed once there, and not at all where their states are
/// known.
struct VisionInput {
  /// [patches, 3 * patch * patch] float32, window order within each image, one temporal slot: of the windows
  /// that must be computed.
  at::Tensor patches;
  PatchRows computed;
  /// Of all images.
  PatchRows all;
  Segments images;
  /// Where some windows are known or equal: for every row of `all` its row among the computed ones, then the
  /// known ones: [patches] int64. Else undefined, and `all` equals `computed`.
  at::Tensor sources;
  /// States that are known.
  std::vector<at::Tensor> known;
};

struct VisionOutput {
  /// [patches / patches_per_cell, out_hidden_size] in the order of the input's merged cells.
  at::Tensor features;
  /// [patches, hidden_size]: of the computed windows, after the leading blocks. Undefined where nobody asked.
  at::Tensor window_states;
};

class VisionTower {
 public:
  VisionTower(const VisionConfig& config, const WeightScope& scope, const Compute& compute,
              const CancelFlag& cancel);

  VisionOutput forward(const VisionInput& input, bool with_states, const CancelFlag& cancel,
                       const TapSink& sink) const;

 private:
  struct Block {
    at::Tensor norm1, norm2;
    Linear qkv, proj, gate_up, down;
  };

  at::Tensor embed_patches(const at::Tensor& patches) const;
  void run_blocks(at::Tensor& x, size_t begin, size_t end, const PatchRows& rows, const Segments& images,
                  const CancelFlag& cancel, const TapSink& sink) const;

  VisionConfig config_;
  Compute compute_;
  Linear patch_embed_;
  at::Tensor frequencies_;
  std::vector<Block> blocks_;
  at::Tensor merger_norm_;
  Linear merger_first_, merger_second_;
};

}  // namespace boq::vlm
