#include "native/vlm/vision_plan.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <unordered_map>

namespace boq::vlm {

namespace {

std::string image_key(const PreparedImage& image) {
  const auto& pixels = image.pixels;
  auto key = std::to_string(pixels.width) + "x" + std::to_string(pixels.height) + ":";
  key.append(reinterpret_cast<const char*>(pixels.data.data()), pixels.data.size());
  return key;
}

/// Equal for windows of equal shape and pixels, wherever they lie: rotary angles enter attention as
/// differences, so what a window becomes does not depend on its place.
std::string window_key(const PreparedImage& image, const CellArea& area, int64_t cell_side) {
  auto key = std::to_string(area.bottom - area.top) + "x" + std::to_string(area.right - area.left) + ":";
  const auto row_bytes = static_cast<size_t>((area.right - area.left) * cell_side * 3);
  for (auto y = area.top * cell_side; y < area.bottom * cell_side; ++y) {
    const auto first = (y * image.pixels.width + area.left * cell_side) * 3;
    key.append(reinterpret_cast<const char*>(image.pixels.data.data()) + first, row_bytes);
  }
  return key;
}

/// A window that must be computed: its image and place, and its cells in that image's window order.
struct WindowJob {
  const PreparedImage* image;
  size_t first_cell;
  int64_t patches;
};

std::vector<int64_t> cells_of(const WindowJob& job, int64_t per_cell) {
  const auto first = job.image->order.cells.begin() + static_cast<int64_t>(job.first_cell);
  return {first, first + job.patches / per_cell};
}

void write_positions(const std::vector<WindowJob>& jobs, const VisionConfig& config, PatchRows& rows) {
  for (const auto& job : jobs) rows.windows.add(job.patches);
  rows.positions = at::empty({rows.windows.rows(), 2}, at::kFloat);
  auto* position = rows.positions.data_ptr<float>();
  for (const auto& job : jobs) {
    const auto cells = cells_of(job, config.patches_per_cell());
    for (const auto& [row, column] : patch_positions(job.image->grid, cells, config)) {
      *position++ = static_cast<float>(row);
      *position++ = static_cast<float>(column);
    }
  }
}

void write_patches(const std::vector<WindowJob>& jobs, const VisionConfig& config,
                   const NormalizeTable& normalize, VisionInput& input) {
  const auto columns = 3 * config.patch_size * config.patch_size;
  input.patches = at::empty({input.computed.windows.rows(), columns}, at::kFloat);
  auto* patches = input.patches.data_ptr<float>();
  at::parallel_for(0, static_cast<int64_t>(jobs.size()), 8, [&](int64_t begin, int64_t end) {
    for (auto i = static_cast<size_t>(begin); i < static_cast<size_t>(end); ++i) {
      write_patch_rows(jobs[i].image->pixels, config, normalize, cells_of(jobs[i], config.patches_per_cell()),
                       patches + input.computed.windows.offsets[i] * columns);
    }
  });
}

/// Sorts windows into those to compute and those that are known or equal to one before them.
class WindowSorter {
 public:
  WindowSorter(const VisionConfig& config, Reuse& reuse) : config_(config), reuse_(reuse) {}

  /// Windows are added in the order of the rows of all images.
  void add(const WindowJob& job, const CellArea& area) {
    ++reuse_.counts.windows;
    auto key = window_key(*job.image, area, config_.patch_size * config_.spatial_merge_size);
    const auto [found, is_new] = places_.try_emplace(std::move(key), Place{});
    if (is_new) {
      const auto known = reuse_.windows.find(found->first);
      found->second = known.defined() ? Place{false, known_rows_} : Place{true, computed_rows_};
      if (known.defined()) {
        known_.push_back(known);
        known_rows_ += job.patches;
      } else {
        jobs.push_back(job);
        keys.push_back(found->first);
        computed_rows_ += job.patches;
        ++reuse_.counts.computed_windows;
      }
    }
    order_.push_back({found->second, job.patches});
  }

  /// Sets `sources` and `known` unless every window is computed.
  void finish(VisionInput& input) const {
    if (jobs.size() == order_.size()) return;
    std::vector<int64_t> rows;
    for (const auto& [place, patches] : order_) {
      const auto first = place.row + (place.is_computed ? 0 : computed_rows_);
      for (int64_t i = 0; i < patches; ++i) rows.push_back(first + i);
    }
    input.sources = at::tensor(rows, at::kLong);
    input.known = known_;
  }

  std::vector<WindowJob> jobs;
  std::vector<std::string> keys;

 private:
  struct Place {
    bool is_computed = false;
    int64_t row = 0;
  };

  const VisionConfig& config_;
  Reuse& reuse_;
  std::unordered_map<std::string, Place> places_;
  std::vector<std::pair<Place, int64_t>> order_;
  std::vector<at::Tensor> known_;
  int64_t known_rows_ = 0, computed_rows_ = 0;
};

}  // namespace

VisionPlan plan_vision(const std::vector<PreparedImage>& images, const VisionConfig& config,
                       const NormalizeTable& normalize, Reuse* reuse) {
  VisionPlan plan;
  std::vector<const PreparedImage*> computed;
  std::unordered_map<std::string, size_t> places;
  for (const auto& image : images) {
    auto key = reuse && reuse->options.images ? image_key(image) : std::string();
    const auto known = key.empty() ? at::Tensor() : reuse->images.find(key);
    const auto same = key.empty() ? places.end() : places.find(key);
    if (reuse) ++reuse->counts.images;
    if (known.defined() || same != places.end()) {
      plan.images.push_back({known, known.defined() ? 0 : same->second});
      continue;
    }
    plan.images.push_back({{}, computed.size()});
    if (!key.empty()) places.emplace(key, computed.size());
    plan.image_keys.push_back(std::move(key));
    computed.push_back(&image);
    if (reuse) ++reuse->counts.computed_images;
  }
  if (computed.empty()) return plan;

  const bool sorts_windows = reuse && reuse->options.windows && config.leading_window_blocks() > 0;
  std::vector<WindowJob> all;
  std::vector<CellArea> areas;
  for (const auto* image : computed) {
    plan.input.images.add(image->grid.height * image->grid.width);
    size_t cell = 0;
    for (size_t w = 0; w < image->order.windows.size(); ++w) {
      all.push_back({image, cell, image->order.window_lengths[w]});
      areas.push_back(image->order.windows[w]);
      cell += static_cast<size_t>(all.back().patches / config.patches_per_cell());
    }
  }
  write_positions(all, config, plan.input.all);
  if (!sorts_windows) {
    plan.input.computed = plan.input.all;
    write_patches(all, config, normalize, plan.input);
    return plan;
  }
  WindowSorter sorter(config, *reuse);
  for (size_t i = 0; i < all.size(); ++i) sorter.add(all[i], areas[i]);
  sorter.finish(plan.input);
  write_positions(sorter.jobs, config, plan.input.computed);
  write_patches(sorter.jobs, config, normalize, plan.input);
  plan.window_keys = std::move(sorter.keys);
  return plan;
}

at::Tensor finish_vision(const VisionPlan& plan, const VisionOutput& output, const VisionConfig& config,
                         Reuse* reuse) {
  const auto per_cell = config.patches_per_cell();
  const auto& images = plan.input.images;
  const auto computed = [&](size_t i) {
    return output.features.narrow(0, images.offsets[i] / per_cell, images.length(i) / per_cell);
  };
  std::vector<at::Tensor> parts;
  for (const auto& source : plan.images) {
    parts.push_back(source.known.defined() ? source.known : computed(source.computed));
  }
  for (size_t i = 0; i < plan.image_keys.size(); ++i) {
    if (!plan.image_keys[i].empty()) reuse->images.keep(plan.image_keys[i], computed(i).clone());
  }
  const auto& windows = plan.input.computed.windows;
  for (size_t i = 0; i < plan.window_keys.size(); ++i) {
    const auto states = output.window_states.narrow(0, windows.offsets[i], windows.length(i));
    reuse->windows.keep(plan.window_keys[i], states.clone());
  }
  return at::cat(parts);
}

}  // namespace boq::vlm
