// From items to the inputs of the model: checks, image sizes, expansion of image tokens, and packs of several
// sequences.
#pragma once

#include <vector>

#include "native/vlm/config.h"
#include "native/vlm/image.h"
#include "native/vlm/layout.h"
#include "native/vlm/text.h"
#include "native/vlm/vision_plan.h"

namespace boq::vlm {

/// One sequence. `ids` holds exactly one image-pad id per image; it is expanded to the image's token count
/// inside.
struct EmbedItem {
  std::vector<int32_t> ids;
  std::vector<RgbImage> images;
};

/// What is needed to turn items into inputs.
struct InputRules {
  ModelConfig model;
  PreprocessorConfig preprocessor;
  NormalizeTable normalize{};
};

/// An item that passed every check, with its image tokens counted; pixels are prepared later, pack by pack.
struct Sequence {
  const EmbedItem* item = nullptr;
  /// Expanded.
  std::vector<int32_t> ids;
  std::vector<Grid> grids;

  int64_t tokens() const { return static_cast<int64_t>(ids.size()); }
  int64_t patches() const;
};

/// Throws BOQ_INVALID_ARGUMENT, BOQ_IMAGE_INVALID or BOQ_CONTEXT_OVERFLOW; messages start with "item
/// `index`". The item must outlive the sequence.
Sequence make_sequence(const EmbedItem& item, size_t index, const InputRules& rules);

/// Indices of sequences that go through the model together, none above `token_budget` tokens unless a single
/// one is. Sequences of similar length come together, so that attention works on dense batches.
std::vector<std::vector<size_t>> plan_packs(const std::vector<Sequence>& sequences, int64_t token_budget);

struct Pack {
  VisionPlan vision;
  TextInput text;
  /// Of each sequence: the rows of its tokens in the hidden states.
  std::vector<std::vector<RowRange>> rows;
  bool has_images() const { return !vision.images.empty(); }
};

/// `reuse` may be null: then nothing is shared, and every sequence is one run.
Pack make_pack(const std::vector<const Sequence*>& sequences, const InputRules& rules,
               Reuse* reuse = nullptr);

}  // namespace boq::vlm
