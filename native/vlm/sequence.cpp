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

/// An image of a pack: what to resize, and what it becomes.
struct ImageJob {
  const RgbImage* image;
  PreparedImage prepared;
};

void resize_images(std::vector<ImageJob>& jobs, int64_t patch) {
  at::parallel_for(0, static_cast<int64_t>(jobs.size()), 1, [&](int64_t begin, int64_t end) {
    for (auto i = static_cast<size_t>(begin); i < static_cast<size_t>(end); ++i) {
      auto& prepared = jobs[i].prepared;
      prepared.pixels =
          resize_bicubic(*jobs[i].image, {prepared.grid.height * patch, prepared.grid.width * patch});
    }
  });
}

SharedText shared_text(const Sequence& sequence, int64_t image_token_id) {
  const auto first_image = std::find(sequence.ids.begin(), sequence.ids.end(), image_token_id);
  return {&sequence.ids, first_image - sequence.ids.begin()};
}

}  // namespace

Pack make_pack(const std::vector<const Sequence*>& sequences, const InputRules& rules, Reuse* reuse) {
  const auto& model = rules.model;
  Pack pack;
  std::vector<SharedText> texts;
  for (const auto* sequence : sequences) texts.push_back(shared_text(*sequence, model.image_token_id));
  auto plan = plan_sharing(texts, reuse && reuse->options.prefixes ? &reuse->prefixes : nullptr);
  auto& text = pack.text;
  bool has_prefixes = false;
  for (auto& run : plan.runs) {
    text.runs.add(run.end - run.begin);
    has_prefixes |= !run.before.empty();
    text.runs.prefixes.push_back(std::move(run.before));
  }
  if (!has_prefixes) text.runs.prefixes.clear();
  text.runs.key_shift = plan.stored_rows;
  text.stored = std::move(plan.stored);
  text.stored_rows = plan.stored_rows;
  for (const auto& wish : plan.wishes) {
    const auto& ids = sequences[wish.sequence]->ids;
    text.wishes.push_back(first_rows(plan.rows[wish.sequence], wish.tokens));
    text.wished_ids.emplace_back(ids.begin(), ids.begin() + wish.tokens);
  }

  const auto tokens = text.runs.rows();
  text.ids = at::empty({tokens}, at::kLong);
  text.positions = at::empty({3, tokens}, at::kFloat);
  auto* ids = text.ids.data_ptr<int64_t>();
  auto* positions = text.positions.data_ptr<float>();
  std::vector<ImageJob> jobs;
  std::vector<int64_t> image_rows;
  int64_t row = 0;
  for (const auto& run : plan.runs) {
    const auto& sequence = *sequences[run.sequence];
    const auto places =
        token_positions(sequence.ids, sequence.grids, static_cast<int32_t>(model.image_token_id),
                        model.vision.spatial_merge_size);
    // Runs that share end before the first image, so a run has all images of its sequence or none.
    size_t image = 0;
    for (auto i = static_cast<size_t>(run.begin); i < static_cast<size_t>(run.end);) {
      if (sequence.ids[i] != model.image_token_id) {
        ++i;
        continue;
      }
      const auto& grid = sequence.grids[image];
      jobs.push_back({&sequence.item->images[image], {grid, make_window_order(grid, model.vision), {}}});
      // Features leave the tower in window order and belong into raster order.
      const auto& cells = jobs.back().prepared.order.cells;
      const auto first = row + static_cast<int64_t>(i) - run.begin;
      for (const auto cell : cells) image_rows.push_back(first + cell);
      i += cells.size();
      ++image;
    }
    for (auto i = static_cast<size_t>(run.begin); i < static_cast<size_t>(run.end); ++i, ++row) {
      ids[row] = sequence.ids[i];
      for (size_t axis = 0; axis < 3; ++axis) {
        positions[static_cast<int64_t>(axis) * tokens + row] = static_cast<float>(places[i][axis]);
      }
    }
  }
  if (!jobs.empty()) {
    resize_images(jobs, model.vision.patch_size);
    std::vector<PreparedImage> images;
    for (auto& job : jobs) images.push_back(std::move(job.prepared));
    pack.vision = plan_vision(images, model.vision, rules.normalize, reuse);
    text.image_rows = at::tensor(image_rows, at::kLong);
  }
  if (reuse) {
    for (const auto* sequence : sequences) reuse->counts.tokens += sequence->tokens();
    reuse->counts.computed_tokens += tokens;
  }
  pack.rows = std::move(plan.rows);
  return pack;
}

}  // namespace boq::vlm
