// From RGB bytes to patch rows, bit for bit what the torchvision-backend processor of transformers computes:
// target size, fixed-point bicubic resize with antialiasing, normalisation, rows of patches.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "native/vlm/config.h"

namespace boq::vlm {

/// RGB bytes, row-major: width * height * 3.
struct RgbImage {
  std::vector<uint8_t> data;
  int64_t width = 0;
  int64_t height = 0;
};

struct ImageSize {
  int64_t height = 0;
  int64_t width = 0;
  bool operator==(const ImageSize&) const = default;
};

/// Throws BOQ_IMAGE_INVALID where the bytes do not fit the size, or the size is empty or absurd.
void check_image(const RgbImage& image);

/// The nearest size whose sides are multiples of `factor` and whose area is within the limits (as far as one
/// patch per side allows). Throws BOQ_IMAGE_INVALID for sides that differ by more than 200 times.
ImageSize smart_resize(ImageSize size, int64_t factor, int64_t min_pixels, int64_t max_pixels);

/// Bicubic (a = -0.5) with antialiasing in int16 fixed point, horizontal pass first, rounded to bytes after
/// each pass: the uint8 kernel of ATen.
RgbImage resize_bicubic(const RgbImage& image, ImageSize size);

/// value -> (value - mean * 255) / (std * 255) for every byte of every channel, in float32.
using NormalizeTable = std::array<std::array<float, 256>, 3>;
NormalizeTable make_normalize_table(const PreprocessorConfig& config);

/// Writes one row of 3 * patch * patch floats (channel, y, x) per patch: `cells` (raster index of merged
/// cells) in the given order, the patches of a cell in raster order. For a still image all temporal slots of
/// a patch are equal, so only one is written.
void write_patch_rows(const RgbImage& resized, const VisionConfig& config, const NormalizeTable& table,
                      const std::vector<int64_t>& cells, float* rows);

}  // namespace boq::vlm
