// Where things are: the order of patches in the vision tower, and the positions of tokens in the text model.
// Plain integers computed once per grid or item; no tensors.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "native/vlm/config.h"

namespace boq::vlm {

/// Patches of an image; both sides are multiples of spatial_merge_size.
struct Grid {
  int64_t height = 0;
  int64_t width = 0;
  bool operator==(const Grid&) const = default;
};

/// Merged cells [top, bottom) x [left, right) of an image.
struct CellArea {
  int64_t top = 0, bottom = 0, left = 0, right = 0;
};

/// The tower works on patches in window order, so that window attention reads contiguous rows. Windows are
/// sorted by shape (full ones first, then the ragged right edge, bottom edge and corner): attention does not
/// care about their order, and equal lengths batch.
struct WindowOrder {
  /// Raster index of the merged cell for every merged row.
  std::vector<int64_t> cells;
  /// Patches of every window, in the same order.
  std::vector<int64_t> window_lengths;
  /// Merged cells that every window covers.
  std::vector<CellArea> windows;
};
WindowOrder make_window_order(Grid grid, const VisionConfig& config);

/// Patch row and patch column of every patch, for cells in the given order: [patches][2].
std::vector<std::array<int64_t, 2>> patch_positions(Grid grid, const std::vector<int64_t>& cells,
                                                    const VisionConfig& config);

/// The t, h and w position of every token of one item. `ids` are expanded: as many image tokens in a row as
/// the image has merged cells, in the order of `grids`.
std::vector<std::array<int64_t, 3>> token_positions(const std::vector<int32_t>& ids,
                                                    const std::vector<Grid>& grids, int32_t image_token_id,
                                                    int64_t merge_size);

/// Rows [begin, end).
struct RowRange {
  int64_t begin = 0;
  int64_t end = 0;

  int64_t size() const { return end - begin; }
  bool operator==(const RowRange&) const = default;
};

/// Rows [offsets[i], offsets[i + 1]) attend to each other and, where `prefixes` has an entry, to rows before
/// them.
struct Segments {
  std::vector<int64_t> offsets{0};
  int64_t longest = 0;
  /// Keys may hold more rows than queries: row i of the queries is row i + key_shift of the keys.
  int64_t key_shift = 0;
  /// Nothing, or for every segment the rows of the keys that all of its queries see before their own.
  std::vector<std::vector<RowRange>> prefixes;

  void add(int64_t length) {
    offsets.push_back(offsets.back() + length);
    longest = length > longest ? length : longest;
  }
  size_t size() const { return offsets.size() - 1; }
  int64_t rows() const { return offsets.back(); }
  int64_t length(size_t i) const { return offsets[i + 1] - offsets[i]; }
  int64_t prefix_length(size_t i) const {
    int64_t total = 0;
    if (!prefixes.empty()) {
      for (const auto& range : prefixes[i]) total += range.size();
    }
    return total;
  }
};

}  // namespace boq::vlm
