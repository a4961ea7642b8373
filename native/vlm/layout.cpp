#include "native/vlm/layout.h"

#include <algorithm>

#include "native/core/error.h"

namespace boq::vlm {

WindowOrder make_window_order(Grid grid, const VisionConfig& config) {
  const auto side = config.window_cells();
  const auto rows = grid.height / config.spatial_merge_size, columns = grid.width / config.spatial_merge_size;
  WindowOrder order;
  order.cells.reserve(static_cast<size_t>(rows * columns));
  const auto add_windows = [&](int64_t row_begin, int64_t row_end, int64_t column_begin, int64_t column_end) {
    for (int64_t top = row_begin; top < row_end; top += side) {
      for (int64_t left = column_begin; left < column_end; left += side) {
        const auto bottom = std::min(top + side, rows), right = std::min(left + side, columns);
        for (int64_t row = top; row < bottom; ++row) {
          for (int64_t column = left; column < right; ++column) order.cells.push_back(row * columns + column);
        }
        order.window_lengths.push_back((bottom - top) * (right - left) * config.patches_per_cell());
        order.windows.push_back({top, bottom, left, right});
      }
    }
  };
  const auto whole_rows = rows / side * side, whole_columns = columns / side * side;
  add_windows(0, whole_rows, 0, whole_columns);
  add_windows(0, whole_rows, whole_columns, columns);
  add_windows(whole_rows, rows, 0, whole_columns);
  add_windows(whole_rows, rows, whole_columns, columns);
  return order;
}

std::vector<std::array<int64_t, 2>> patch_positions(Grid grid, const std::vector<int64_t>& cells,
                                                    const VisionConfig& config) {
  const auto merge = config.spatial_merge_size;
  const auto columns = grid.width / merge;
  std::vector<std::array<int64_t, 2>> positions;
  positions.reserve(cells.size() * static_cast<size_t>(config.patches_per_cell()));
  for (const auto cell : cells) {
    for (int64_t y = 0; y < merge; ++y) {
      for (int64_t x = 0; x < merge; ++x) {
        positions.push_back({cell / columns * merge + y, cell % columns * merge + x});
      }
    }
  }
  return positions;
}

std::vector<std::array<int64_t, 3>> token_positions(const std::vector<int32_t>& ids,
                                                    const std::vector<Grid>& grids, int32_t image_token_id,
                                                    int64_t merge_size) {
  std::vector<std::array<int64_t, 3>> positions;
  positions.reserve(ids.size());
  int64_t next = 0;
  size_t image = 0;
  while (positions.size() < ids.size()) {
    if (ids[positions.size()] != image_token_id) {
      positions.push_back({next, next, next});
      ++next;
      continue;
    }
    BOQ_CHECK(image < grids.size(), ErrorCode::kInternal, "more runs of image tokens than images");
    const auto rows = grids[image].height / merge_size, columns = grids[image].width / merge_size;
    for (int64_t row = 0; row < rows; ++row) {
      for (int64_t column = 0; column < columns; ++column)
        positions.push_back({next, next + row, next + column});
    }
    next += std::max(rows, columns);
    ++image;
  }
  BOQ_CHECK(positions.size() == ids.size() && image == grids.size(), ErrorCode::kInternal,
            "image tokens and images do not fit each other");
  return positions;
}

}  // namespace boq::vlm
