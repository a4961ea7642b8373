#include "native/vlm/image.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "native/core/error.h"

namespace boq::vlm {

namespace {

constexpr int64_t kMaxSide = 1 << 20;
constexpr int64_t kMaxImagePixels = int64_t{1} << 28;

}  // namespace

void check_image(const RgbImage& image) {
  BOQ_CHECK(image.width >= 1 && image.height >= 1, ErrorCode::kImageInvalid, "an image of ", image.width, "x",
            image.height, " pixels is empty");
  BOQ_CHECK(
      image.width <= kMaxSide && image.height <= kMaxSide && image.width * image.height <= kMaxImagePixels,
      ErrorCode::kImageInvalid, "an image of ", image.width, "x", image.height, " pixels is larger than ",
      kMaxImagePixels, " pixels or ", kMaxSide, " a side");
  const auto expected = static_cast<uint64_t>(image.width * image.height * 3);
  BOQ_CHECK(image.data.size() == expected, ErrorCode::kImageInvalid, "an RGB image of ", image.width, "x",
            image.height, " pixels needs ", expected, " bytes, found ", image.data.size());
}

ImageSize smart_resize(ImageSize size, int64_t factor, int64_t min_pixels, int64_t max_pixels) {
  const auto h = static_cast<double>(size.height), w = static_cast<double>(size.width);
  const auto f = static_cast<double>(factor);
  BOQ_CHECK(size.height >= 1 && size.width >= 1, ErrorCode::kImageInvalid, "the image is empty");
  BOQ_CHECK(std::max(h, w) / std::min(h, w) <= 200, ErrorCode::kImageInvalid, "an image of ", size.width, "x",
            size.height, " pixels: one side is more than 200 times the other");
  // nearbyint rounds halves to even, as Python's round does.
  double height = std::nearbyint(h / f) * f, width = std::nearbyint(w / f) * f;
  if (height * width > static_cast<double>(max_pixels)) {
    const double beta = std::sqrt(h * w / static_cast<double>(max_pixels));
    height = std::max(f, std::floor(h / beta / f) * f);
    width = std::max(f, std::floor(w / beta / f) * f);
  } else if (height * width < static_cast<double>(min_pixels)) {
    const double beta = std::sqrt(static_cast<double>(min_pixels) / (h * w));
    height = std::ceil(h * beta / f) * f;
    width = std::ceil(w * beta / f) * f;
  }
  return {static_cast<int64_t>(height), static_cast<int64_t>(width)};
}

namespace {

/// The taps of one axis: output o is the sum over k < count[o] of weight[o * stride + k] * input[first[o] +
/// k].
struct AxisTaps {
  int64_t stride = 0;
  int precision = 0;
  std::vector<int64_t> first;
  std::vector<int64_t> count;
  std::vector<int32_t> weights;
};

double bicubic(double x) {
  constexpr double a = -0.5;
  x = std::abs(x);
  if (x < 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  if (x < 2) return (((x - 5) * x + 8) * x - 4) * a;
  return 0;
}

AxisTaps make_taps(int64_t input, int64_t output) {
  const double scale = static_cast<double>(input) / static_cast<double>(output);
  const double filter_scale = std::max(scale, 1.0);
  const double support = 2 * filter_scale;
  AxisTaps taps;
  taps.stride = static_cast<int64_t>(std::ceil(support)) * 2 + 1;
  std::vector<double> weights(static_cast<size_t>(output * taps.stride), 0.0);
  double largest = 0;
  for (int64_t o = 0; o < output; ++o) {
    const double center = (static_cast<double>(o) + 0.5) * scale;
    const auto lo = std::max(static_cast<int64_t>(center - support + 0.5), int64_t{0});
    const auto hi = std::min(static_cast<int64_t>(center + support + 0.5), input);
    const auto count = std::clamp(hi - lo, int64_t{0}, taps.stride);
    double* row = &weights[static_cast<size_t>(o * taps.stride)];
    double sum = 0;
    for (int64_t k = 0; k < count; ++k) {
      // The order of these operations decides the last bit, and thereby, rarely, a pixel.
      row[k] =
          bicubic((static_cast<double>(k) + (static_cast<double>(lo) - center) + 0.5) * (1 / filter_scale));
      sum += row[k];
    }
    for (int64_t k = 0; k < count && sum != 0; ++k) {
      row[k] /= sum;
      largest = std::max(largest, row[k]);
    }
    taps.first.push_back(lo);
    taps.count.push_back(count);
  }
  // As many fraction bits as keep the largest weight within int16.
  while (taps.precision < 22 &&
         static_cast<int64_t>(0.5 + largest * static_cast<double>(1 << (taps.precision + 1))) < (1 << 15)) {
    ++taps.precision;
  }
  const auto one = static_cast<double>(1 << taps.precision);
  taps.weights.reserve(weights.size());
  for (const double w : weights) taps.weights.push_back(static_cast<int32_t>(w * one + (w < 0 ? -0.5 : 0.5)));
  return taps;
}

uint8_t to_byte(int32_t sum, int precision) {
  return static_cast<uint8_t>(std::clamp(sum >> precision, 0, 255));
}

RgbImage resize_width(const RgbImage& image, int64_t width) {
  const auto taps = make_taps(image.width, width);
  RgbImage out{std::vector<uint8_t>(static_cast<size_t>(image.height * width * 3)), width, image.height};
  const int32_t half = taps.precision > 0 ? 1 << (taps.precision - 1) : 0;
  for (int64_t y = 0; y < image.height; ++y) {
    const uint8_t* source = &image.data[static_cast<size_t>(y * image.width * 3)];
    uint8_t* target = &out.data[static_cast<size_t>(y * width * 3)];
    for (int64_t x = 0; x < width; ++x) {
      const int32_t* weight = &taps.weights[static_cast<size_t>(x * taps.stride)];
      const uint8_t* pixel = source + taps.first[static_cast<size_t>(x)] * 3;
      int32_t red = half, green = half, blue = half;
      for (int64_t k = 0; k < taps.count[static_cast<size_t>(x)]; ++k, pixel += 3) {
        red += weight[k] * pixel[0];
        green += weight[k] * pixel[1];
        blue += weight[k] * pixel[2];
      }
      *target++ = to_byte(red, taps.precision);
      *target++ = to_byte(green, taps.precision);
      *target++ = to_byte(blue, taps.precision);
    }
  }
  return out;
}

RgbImage resize_height(const RgbImage& image, int64_t height) {
  const auto taps = make_taps(image.height, height);
  const auto row_bytes = static_cast<size_t>(image.width * 3);
  RgbImage out{std::vector<uint8_t>(static_cast<size_t>(height) * row_bytes), image.width, height};
  std::vector<int32_t> sums(row_bytes);
  for (int64_t y = 0; y < height; ++y) {
    std::fill(sums.begin(), sums.end(), taps.precision > 0 ? 1 << (taps.precision - 1) : 0);
    for (int64_t k = 0; k < taps.count[static_cast<size_t>(y)]; ++k) {
      const int32_t weight = taps.weights[static_cast<size_t>(y * taps.stride + k)];
      const uint8_t* source =
          &image.data[static_cast<size_t>(taps.first[static_cast<size_t>(y)] + k) * row_bytes];
      for (size_t i = 0; i < row_bytes; ++i) sums[i] += weight * source[i];
    }
    uint8_t* target = &out.data[static_cast<size_t>(y) * row_bytes];
    for (size_t i = 0; i < row_bytes; ++i) target[i] = to_byte(sums[i], taps.precision);
  }
  return out;
}

}  // namespace

RgbImage resize_bicubic(const RgbImage& image, ImageSize size) {
  if (size.width == image.width && size.height == image.height) return image;
  if (size.height == image.height) return resize_width(image, size.width);
  if (size.width == image.width) return resize_height(image, size.height);
  return resize_height(resize_width(image, size.width), size.height);
}

NormalizeTable make_normalize_table(const PreprocessorConfig& config) {
  NormalizeTable table;
  for (size_t c = 0; c < 3; ++c) {
    const float mean = static_cast<float>(config.image_mean[c]) * 255.0f;
    const float deviation = static_cast<float>(config.image_std[c]) * 255.0f;
    for (size_t v = 0; v < 256; ++v) table[c][v] = (static_cast<float>(v) - mean) / deviation;
  }
  return table;
}

void write_patch_rows(const RgbImage& resized, const VisionConfig& config, const NormalizeTable& table,
                      const std::vector<int64_t>& cells, float* rows) {
  const auto patch = config.patch_size, merge = config.spatial_merge_size;
  const auto cells_per_row = resized.width / patch / merge;
  for (const auto cell : cells) {
    const auto cell_y = cell / cells_per_row * merge, cell_x = cell % cells_per_row * merge;
    for (int64_t inside = 0; inside < merge * merge; ++inside) {
      const auto top = (cell_y + inside / merge) * patch, left = (cell_x + inside % merge) * patch;
      for (size_t channel = 0; channel < 3; ++channel) {
        for (int64_t y = 0; y < patch; ++y) {
          const uint8_t* pixel =
              &resized.data[static_cast<size_t>(((top + y) * resized.width + left) * 3) + channel];
          for (int64_t x = 0; x < patch; ++x, pixel += 3) *rows++ = table[channel][*pixel];
        }
      }
    }
  }
}

}  // namespace boq::vlm
