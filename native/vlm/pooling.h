// One vector per sequence from the hidden states of its tokens.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <vector>

#include "native/vlm/sequence.h"

namespace boq::vlm {

enum class Pooling {
  kMean,       ///< all tokens
  kLast,       ///< the last token
  kTextMean,   ///< all tokens that are not image tokens
  kImageMean,  ///< image tokens only
};

/// mean | last | text-mean | image-mean. Throws BOQ_INVALID_ARGUMENT.
Pooling parse_pooling(const std::string& text);

/// Throws BOQ_INVALID_ARGUMENT where the sequence has no token of the kind that is pooled.
void check_poolable(const Sequence& sequence, size_t index, Pooling pooling, int64_t image_token_id);

/// hidden [rows, width] of packed `sequences`, `rows[i]` being the rows of sequence i -> [sequences, width]
/// float32, accumulated in float32.
at::Tensor pool(const at::Tensor& hidden, const std::vector<const Sequence*>& sequences,
                const std::vector<std::vector<RowRange>>& rows, Pooling pooling, int64_t image_token_id,
                bool use_l2);

}  // namespace boq::vlm
