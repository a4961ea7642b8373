#include "native/vlm/pooling.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "native/core/error.h"

namespace boq::vlm {

Pooling parse_pooling(const std::string& text) {
  if (text == "mean") return Pooling::kMean;
  if (text == "last") return Pooling::kLast;
  if (text == "text-mean") return Pooling::kTextMean;
  if (text == "image-mean") return Pooling::kImageMean;
  fail(ErrorCode::kInvalidArgument, "pooling '", text, "': expected mean, last, text-mean or image-mean");
}

void check_poolable(const Sequence& sequence, size_t index, Pooling pooling, int64_t image_token_id) {
  const auto is_image = [&](int32_t id) { return id == image_token_id; };
  if (pooling == Pooling::kImageMean) {
    BOQ_CHECK(std::any_of(sequence.ids.begin(), sequence.ids.end(), is_image), ErrorCode::kInvalidArgument,
              "item ", index, ": pooling image-mean needs an image, the item has none");
  } else if (pooling == Pooling::kTextMean) {
    BOQ_CHECK(!std::all_of(sequence.ids.begin(), sequence.ids.end(), is_image), ErrorCode::kInvalidArgument,
              "item ", index, ": pooling text-mean needs a text token, the item has none");
  }
}

at::Tensor pool(const at::Tensor& hidden, const std::vector<const Sequence*>& sequences,
                const std::vector<std::vector<RowRange>>& rows, Pooling pooling, int64_t image_token_id,
                bool use_l2) {
  // Rows to average and the sequence each belongs to.
  std::vector<int64_t> pooled, owners;
  std::vector<float> shares;
  for (size_t s = 0; s < sequences.size(); ++s) {
    const auto& ids = sequences[s]->ids;
    std::vector<int64_t> row_of;
    for (const auto& range : rows[s]) {
      for (auto row = range.begin; row < range.end; ++row) row_of.push_back(row);
    }
    const auto before = pooled.size();
    for (size_t i = 0; i < ids.size(); ++i) {
      const bool is_image = ids[i] == image_token_id;
      const bool is_chosen =
          pooling == Pooling::kMean || (pooling == Pooling::kLast && i + 1 == ids.size()) ||
          (pooling == Pooling::kTextMean && !is_image) || (pooling == Pooling::kImageMean && is_image);
      if (!is_chosen) continue;
      pooled.push_back(row_of[i]);
      owners.push_back(static_cast<int64_t>(s));
    }
    shares.push_back(1.0f / static_cast<float>(pooled.size() - before));
  }
  const auto on_device = [&](const at::Tensor& tensor) { return tensor.to(hidden.device()); };
  auto chosen = hidden.index_select(0, on_device(at::tensor(pooled, at::kLong))).to(at::kFloat);
  auto vectors = at::zeros({static_cast<int64_t>(sequences.size()), hidden.size(1)}, chosen.options());
  vectors.index_add_(0, on_device(at::tensor(owners, at::kLong)), chosen);
  vectors.mul_(on_device(at::tensor(shares)).unsqueeze(1));
  if (use_l2) vectors.div_(at::norm(vectors, 2, 1, true).clamp_min(1e-12));
  return vectors.cpu();
}

}  // namespace boq::vlm
