// The frozen vision-language model as an embedder: token ids and RGB images in, one pooled float32 vector an
// item out. Files by model part: config, image, vision, text; this one puts them together and packs items
// into batches.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "native/core/control.h"
#include "native/vlm/reuse.h"
#include "native/vlm/sequence.h"

namespace boq::vlm {

struct EmbedderOptions {
  /// Folder in the Hugging Face layout: config.json, model.safetensors or its shards.
  std::filesystem::path path;
  /// auto | cpu | cuda:N
  std::string device = "auto";
  /// auto | float32 | bfloat16
  std::string dtype = "auto";
  /// mean (all tokens) | last | text-mean | image-mean
  std::string pooling = "mean";
  /// Scales every vector to length 1.
  bool l2 = false;
  /// -1: after the final norm. Else `hidden_states[k]` of transformers: the token embeddings for 0, the
  /// un-normed output of the k-th layer for k in [1, layers), the same as -1 for k = layers.
  int64_t hidden_layer = -1;
  /// 0: what preprocessor_config.json says.
  int64_t min_pixels = 0;
  int64_t max_pixels = 0;
  ReuseOptions reuse;
};

struct EmbedResult {
  /// [items, width] float32 on the CPU.
  at::Tensor vectors;
  /// Tokens of each item after image expansion.
  std::vector<int32_t> tokens;
  /// Of this call.
  ReuseCounts reuse;
};

struct EmbedderInfo {
  int64_t width = 0;
  int64_t layers = 0;
  std::string device;
  std::string dtype;
  int64_t max_tokens = 0;
  int64_t image_token_id = 0;
  int64_t parameter_count = 0;
};

/// Not thread-safe: one embed() at a time (the device's job thread calls it). No state outlives a call but
/// the weights and what ReuseOptions allows to remember.
class Embedder {
 public:
  /// Throws BOQ_FILE_NOT_FOUND, BOQ_FILE_CORRUPT, BOQ_CONFIG_INVALID, BOQ_WEIGHTS_MISSING,
  /// BOQ_WEIGHTS_UNEXPECTED, BOQ_CUDA_UNAVAILABLE, BOQ_INVALID_ARGUMENT, BOQ_OUT_OF_MEMORY, BOQ_ABORTED.
  static std::shared_ptr<Embedder> load(const EmbedderOptions& options, const CancelFlag& cancel);

  virtual ~Embedder() = default;

  /// Any mix of lengths and images; results are in the order of `items` and agree with one-by-one calls
  /// within the tolerance of the data type. Throws BOQ_INVALID_ARGUMENT, BOQ_IMAGE_INVALID,
  /// BOQ_CONTEXT_OVERFLOW, BOQ_OUT_OF_MEMORY, BOQ_ABORTED; the embedder stays usable after each.
  virtual EmbedResult embed(const std::vector<EmbedItem>& items, const CancelFlag& cancel) = 0;
  virtual const EmbedderInfo& info() const = 0;
  /// Forgets everything that was remembered, and remembers according to `options` from now on.
  virtual void set_reuse(const ReuseOptions& options) = 0;
};

}  // namespace boq::vlm
