// config.json and preprocessor_config.json of a qwen2_5_vl checkpoint, read strictly: what is not understood
// is refused, never guessed. Accepts the file generations of transformers 4.4x (flat), 4.5x (text_config
// beside) and 5 (rope_parameters).
#pragma once

#include <c10/core/ScalarType.h>

#include <array>
#include <cstdint>
#include <filesystem>
#include <vector>

#include "native/core/json.h"

namespace boq::vlm {

struct VisionConfig {
  int64_t depth = 0;
  int64_t hidden_size = 0;
  int64_t intermediate_size = 0;
  int64_t num_heads = 0;
  int64_t patch_size = 0;
  int64_t temporal_patch_size = 0;
  int64_t spatial_merge_size = 0;
  /// Pixels; a window is window_size / patch_size patches wide.
  int64_t window_size = 0;
  int64_t out_hidden_size = 0;
  /// Blocks that attend over the whole image instead of a window.
  std::vector<int64_t> fullatt_block_indexes;

  int64_t head_dim() const { return hidden_size / num_heads; }
  /// Merged cells along one side of a window.
  int64_t window_cells() const { return window_size / spatial_merge_size / patch_size; }
  int64_t patches_per_cell() const { return spatial_merge_size * spatial_merge_size; }
  bool is_full_attention(int64_t block) const;
  /// Blocks before the first one with full attention.
  int64_t leading_window_blocks() const;
};

struct TextConfig {
  int64_t hidden_size = 0;
  int64_t num_hidden_layers = 0;
  int64_t num_attention_heads = 0;
  int64_t num_key_value_heads = 0;
  int64_t intermediate_size = 0;
  int64_t vocab_size = 0;
  int64_t max_position_embeddings = 0;
  double rms_norm_eps = 0;
  double rope_theta = 0;
  /// Rotary pairs whose angle follows the t, h and w position.
  std::array<int64_t, 3> mrope_section{};

  int64_t head_dim() const { return hidden_size / num_attention_heads; }
};

struct ModelConfig {
  VisionConfig vision;
  TextConfig text;
  int64_t image_token_id = 0;
  int64_t video_token_id = 0;

  /// Throws BOQ_CONFIG_INVALID with file and key.
  static ModelConfig parse(const JsonView& root);
  static ModelConfig read(const std::filesystem::path& folder);
};

/// How pixels are prepared; the published values where the folder has no preprocessor_config.json.
struct PreprocessorConfig {
  int64_t min_pixels = 3136;
  int64_t max_pixels = 12845056;
  std::array<double, 3> image_mean{0.48145466, 0.4578275, 0.40821073};
  std::array<double, 3> image_std{0.26862954, 0.26130258, 0.27577711};

  /// Throws BOQ_CONFIG_INVALID for what this implementation does not do (another resampling, no
  /// normalisation).
  static PreprocessorConfig parse(const JsonView& root, const VisionConfig& vision);
  static PreprocessorConfig read(const std::filesystem::path& folder, const VisionConfig& vision);
};

}  // namespace boq::vlm
