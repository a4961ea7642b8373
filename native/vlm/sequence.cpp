#include "native/vlm/sequence.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <algorithm>
#include <numeric>

#include "native/core/error.h"

namespace boq::vlm {

namespace {

Grid grid_of(const RgbImage& image, const InputRules& rules) {
  check_image(image);
  const auto& vision = rules.model.vision;
  const auto size = smart_resize({image.height, image.width}, vision.patch_size * vision.spatial_merge_size,
                                 rules.preprocessor.min_pixels, rules.preprocessor.max_pixels);
  return {size.height / vision.patch_size, size.width / vision.patch_size};
}

/// Errors of images say which item and image.
std::vector<Grid> grids_of(const EmbedItem& item, size_t index, const InputRules& rules) {
  std::vector<Grid> grids;
  for (size_t i = 0; i < item.images.size(); ++i) {
    try {
      grids.push_back(grid_of(item.images[i], rules));
    } catch (const Error& error) {
      fail(error.code(), "item ", index, ", image ", i, ": ", error.what());
    }
  }
  return grids;
}

}  // namespace

int64_t Sequence::patches() const {
  int64_t total = 0;
  for (const auto& grid : grids) total += grid.height * grid.width;
  return total;
}

Sequence make_sequence(const EmbedItem& item, size_t index, const InputRules& rules) {
  const auto& model = rules.model;
  BOQ_CHECK(!item.ids.empty(), ErrorCode::kInvalidArgument, "item ", index,
            ": holds no token ids; text is empty");
  for (size_t i = 0; i < item.ids.size(); ++i) {
    BOQ_CHECK(item.ids[i] >= 0 && item.ids[i] < model.text.vocab_size, ErrorCode::kInvalidArgument, "item ",
              index, ": token id ", item.ids[i], " at ", i, " is outside the vocabulary of ",
              model.text.vocab_size);
    BOQ_CHECK(item.ids[i] != model.video_token_id, ErrorCode::kInvalidArgument, "item ", index, ": token id ",
              item.ids[i], " at ", i, " stands for a video; videos are not supported");
  }
  const auto pads = std::count(item.ids.begin(), item.ids.end(), static_cast<int32_t>(model.image_token_id));
  BOQ_CHECK(static_cast<size_t>(pads) == item.images.size(), ErrorCode::kInvalidArgument, "item ", index,
            ": ", pads, " image token(s) for ", item.images.size(), " image(s); expected one for each");

  Sequence sequence{&item, {}, grids_of(item, index, rules)};
  const auto tokens =
      static_cast<int64_t>(item.ids.size()) - pads + sequence.patches() / model.vision.patches_per_cell();
  BOQ_CHECK(tokens <= model.text.max_position_embeddings, ErrorCode::kContextOverflow, "item ", index, ": ",
            tokens, " tokens, the model's context is ", model.text.max_position_embeddings,
            "; shorten the text or lower maxPixels");
  sequence.ids.reserve(static_cast<size_t>(tokens));
  size_t image = 0;
  for (const auto id : item.ids) {
    int64_t copies = 1;
    if (id == model.image_token_id) {
      const auto& grid = sequence.grids[image++];
      copies = grid.height * grid.width / model.vision.patches_per_cell();
    }
    sequence.ids.insert(sequence.ids.end(), static_cast<size_t>(copies), id);
  }
  return sequence;
}

std::vector<std::vector<size_t>> plan_packs(const std::vector<Sequence>& sequences, int64_t token_budget) {
  std::vector<size_t> order(sequences.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return sequences[a].tokens() > sequences[b].tokens(); });
  std::vector<std::vector<size_t>> packs;
  int64_t used = 0;
  for (const auto i : order) {
    const auto tokens = sequences[i].tokens();
    if (packs.empty() || used + tokens > token_budget) {
      packs.emplace_back();
      used = 0;
    }
    packs.back().push_back(i);
    used += tokens;
  }
  return packs;
}

namespace {

/// An image of a pack: what to prepare and where its rows go.
struct ImageJob {
  const RgbImage* image;
  Grid grid;
  int64_t first_patch;
  WindowOrder order;
};

VisionInput make_vision_input(const std::vector<ImageJob>& jobs, const InputRules& rules) {
  const auto& config = rules.model.vision;
  VisionInput input;
  for (const auto& job : jobs) {
    input.images.add(job.grid.height * job.grid.width);
    for (const auto length : job.order.window_lengths) input.windows.add(length);
  }
  const auto columns = 3 * config.patch_size * config.patch_size;
  input.patches = at::empty({input.images.rows(), columns}, at::kFloat);
  input.positions = at::empty({input.images.rows(), 2}, at::kFloat);
  auto* patches = input.patches.data_ptr<float>();
  auto* positions = input.positions.data_ptr<float>();
  at::parallel_for(0, static_cast<int64_t>(jobs.size()), 1, [&](int64_t begin, int64_t end) {
    for (auto i = begin; i < end; ++i) {
      const auto& job = jobs[static_cast<size_t>(i)];
      const auto resized = resize_bicubic(
          *job.image, {job.grid.height * config.patch_size, job.grid.width * config.patch_size});
      write_patch_rows(resized, config, rules.normalize, job.order.cells,
                       patches + job.first_patch * columns);
      auto* position = positions + job.first_patch * 2;
      for (const auto& [row, column] : patch_positions(job.grid, job.order.cells, config)) {
        *position++ = static_cast<float>(row);
        *position++ = static_cast<float>(column);
      }
    }
  });
  return input;
}

}  // namespace

Pack make_pack(const std::vector<const Sequence*>& sequences, const InputRules& rules) {
  const auto& model = rules.model;
  Pack pack;
  for (const auto* sequence : sequences) pack.text.sequences.add(sequence->tokens());
  const auto tokens = pack.text.sequences.rows();
  pack.text.ids = at::empty({tokens}, at::kLong);
  pack.text.positions = at::empty({3, tokens}, at::kFloat);
  auto* ids = pack.text.ids.data_ptr<int64_t>();
  auto* positions = pack.text.positions.data_ptr<float>();

  std::vector<ImageJob> jobs;
  std::vector<int64_t> image_rows;
  int64_t row = 0, patch = 0;
  for (const auto* sequence : sequences) {
    const auto places =
        token_positions(sequence->ids, sequence->grids, static_cast<int32_t>(model.image_token_id),
                        model.vision.spatial_merge_size);
    size_t image = 0;
    for (size_t i = 0; i < sequence->ids.size();) {
      if (sequence->ids[i] != model.image_token_id) {
        ++i;
        continue;
      }
      const auto& grid = sequence->grids[image];
      jobs.push_back({&sequence->item->images[image], grid, patch, make_window_order(grid, model.vision)});
      // Features leave the tower in window order and belong into raster order.
      for (const auto cell : jobs.back().order.cells)
        image_rows.push_back(row + static_cast<int64_t>(i) + cell);
      i += jobs.back().order.cells.size();
      patch += grid.height * grid.width;
      ++image;
    }
    for (size_t i = 0; i < places.size(); ++i, ++row) {
      ids[row] = sequence->ids[i];
      for (size_t axis = 0; axis < 3; ++axis) {
        positions[static_cast<int64_t>(axis) * tokens + row] = static_cast<float>(places[i][axis]);
      }
    }
  }
  if (!jobs.empty()) {
    pack.vision = make_vision_input(jobs, rules);
    pack.text.image_rows = at::tensor(image_rows, at::kLong);
  }
  return pack;
}

}  // namespace boq::vlm
