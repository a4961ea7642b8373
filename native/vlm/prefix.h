// Text that several sequences begin with is computed once: attention is causal, so what a token becomes
// depends on the tokens before it alone. Within a pack, common beginnings form a tree, and every run of
// tokens attends to the runs it continues. Between calls, keys, values and hidden states of beginnings are
// kept.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <list>
#include <memory>
#include <vector>

#include "native/vlm/layout.h"

namespace boq::vlm {

/// The beginning of a sequence, text only, as the text model left it.
struct StoredPrefix {
  std::vector<int32_t> ids;
  /// Of each layer: keys, then values, [tokens, 2 * kv_heads, head_dim].
  std::vector<at::Tensor> layers;
  /// [tokens, width]: the hidden state that is pooled.
  at::Tensor hidden;

  int64_t tokens() const { return static_cast<int64_t>(ids.size()); }
  int64_t bytes() const;
};

/// The first `tokens` tokens of a stored prefix; none where `prefix` is null.
struct PrefixMatch {
  std::shared_ptr<const StoredPrefix> prefix;
  int64_t tokens = 0;
};

/// Prefixes by their ids; those not used for longest leave first.
class PrefixStore {
 public:
  explicit PrefixStore(int64_t max_bytes) : max_bytes_(max_bytes) {}

  /// The stored prefix that has most in common with the first `limit` of `ids`, if that is worth anything.
  PrefixMatch find(const std::vector<int32_t>& ids, int64_t limit);
  /// Takes the place of stored prefixes that it continues.
  void keep(StoredPrefix prefix);
  int64_t bytes() const { return bytes_; }

 private:
  int64_t max_bytes_;
  int64_t bytes_ = 0;
  std::list<std::shared_ptr<const StoredPrefix>> entries_;
};

/// Tokens [begin, end) of a sequence that are computed as one segment.
struct TextRun {
  size_t sequence = 0;
  int64_t begin = 0;
  int64_t end = 0;
  /// Rows of the tokens before `begin`.
  std::vector<RowRange> before;
};

/// The first `tokens` tokens of a sequence are worth keeping.
struct PrefixWish {
  size_t sequence = 0;
  int64_t tokens = 0;
};

/// Where every token of a pack is computed. Rows count the stored prefixes first, then the runs, in their
/// order.
struct SharingPlan {
  std::vector<PrefixMatch> stored;
  int64_t stored_rows = 0;
  std::vector<TextRun> runs;
  /// Of each sequence: the rows of all its tokens, in order.
  std::vector<std::vector<RowRange>> rows;
  std::vector<PrefixWish> wishes;
};

/// One sequence as far as sharing looks at it: its ids, and how many of them come before the first image.
struct SharedText {
  const std::vector<int32_t>* ids;
  int64_t shareable = 0;
};

/// Without a store nothing is shared.
SharingPlan plan_sharing(const std::vector<SharedText>& texts, PrefixStore* store);

/// The rows of the first `tokens` tokens of `rows`.
std::vector<RowRange> first_rows(const std::vector<RowRange>& rows, int64_t tokens);

}  // namespace boq::vlm
