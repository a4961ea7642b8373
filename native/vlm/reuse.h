// What an embedder remembers to do less work, each part with a switch. Everything is exact in real
// arithmetic: results differ from the plain path by rounding alone.
#pragma once

#include <cstdint>

#include "native/vlm/prefix.h"
#include "native/vlm/tensor_cache.h"

namespace boq::vlm {

struct ReuseOptions {
  /// Beginnings of text, within a call and between calls.
  bool prefixes = true;
  /// Features of an image that comes again.
  bool images = true;
  /// Windows of the vision tower that come again, in the same image or a later one.
  bool windows = true;
  /// Memory for all of them together.
  int64_t megabytes = 512;
};

/// What was asked for and what was computed; the difference of each pair was reused.
struct ReuseCounts {
  int64_t tokens = 0, computed_tokens = 0;
  int64_t images = 0, computed_images = 0;
  /// Of the computed images.
  int64_t windows = 0, computed_windows = 0;

  ReuseCounts& operator+=(const ReuseCounts& other) {
    tokens += other.tokens;
    computed_tokens += other.computed_tokens;
    images += other.images;
    computed_images += other.computed_images;
    windows += other.windows;
    computed_windows += other.computed_windows;
    return *this;
  }
};

struct Reuse {
  explicit Reuse(const ReuseOptions& chosen)
      : options(chosen),
        prefixes(chosen.megabytes * (1 << 20) / 4),
        images(chosen.megabytes * (1 << 20) / 4),
        windows(chosen.megabytes * (1 << 20) / 2) {}

  ReuseOptions options;
  PrefixStore prefixes;
  TensorCache images, windows;
  ReuseCounts counts;
};

}  // namespace boq::vlm
