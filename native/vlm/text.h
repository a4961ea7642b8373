// The text model over packed sequences: embeddings with image features put in, decoder layers, final norm.
#pragma once

#include <vector>

#include "native/core/control.h"
#include "native/vlm/config.h"
#include "native/vlm/layout.h"
#include "native/vlm/ops.h"
#include "native/vlm/prefix.h"
#include "native/vlm/tap.h"

namespace boq::vlm {

/// The runs of tokens of one pack, one after the other.
struct TextInput {
  /// [tokens] int64.
  at::Tensor ids;
  /// [3, tokens] float32: t, h and w.
  at::Tensor positions;
  Segments runs;
  /// Come before the tokens in the rows of keys and of hidden states.
  std::vector<PrefixMatch> stored;
  int64_t stored_rows = 0;
  /// Beginnings that shall be stored: their rows, and what they are made of.
  std::vector<std::vector<RowRange>> wishes;
  std::vector<std::vector<int32_t>> wished_ids;
  /// Rows of the tokens that hold image features, in the order of `image_features`: [n] int64.
  at::Tensor image_rows;
  /// [n, hidden_size]; undefined without images.
  at::Tensor image_features;
};

struct TextOutput {
  /// [stored rows + tokens, hidden_size]
  at::Tensor hidden;
  /// In the order of the wishes.
  std::vector<StoredPrefix> prefixes;
};

class TextModel {
 public:
  TextModel(const TextConfig& config, const WeightScope& scope, const Compute& compute,
            const CancelFlag& cancel);

  /// Hidden state `hidden_layer` as EmbedderOptions names it.
  TextOutput forward(const TextInput& input, int64_t hidden_layer, const CancelFlag& cancel,
                     const TapSink& sink) const;

 private:
  struct Layer {
    at::Tensor input_norm, post_attention_norm;
    Linear qkv, output, gate_up, down;
  };

  at::Tensor run_layers(at::Tensor x, const TextInput& input, int64_t last,
                        std::vector<StoredPrefix>& prefixes, const CancelFlag& cancel,
                        const TapSink& sink) const;
  Rotary make_rotary(const at::Tensor& positions) const;

  TextConfig config_;
  Compute compute_;
  at::Tensor embed_tokens_;
  at::Tensor frequencies_;
  std::vector<Layer> layers_;
  at::Tensor norm_;
};

}  // namespace boq::vlm
