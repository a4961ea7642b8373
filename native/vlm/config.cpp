#include "native/vlm/config.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace boq::vlm {

namespace {

// Far above every published model, low enough that no product of two of them overflows.
constexpr int64_t kMaxWidth = 1 << 17;
constexpr int64_t kMaxDepth = 1024;
constexpr int64_t kMaxVocabulary = 1 << 24;

void expect(const JsonView& place, bool holds, const std::string& message) {
  if (!holds) place.reject(message);
}

VisionConfig parse_vision(const JsonView& json) {
  VisionConfig config;
  config.depth = json.at("depth").as_int(1, kMaxDepth);
  config.hidden_size = json.at("hidden_size").as_int(1, kMaxWidth);
  config.intermediate_size = json.at("intermediate_size").as_int(1, kMaxWidth);
  config.num_heads = json.at("num_heads").as_int(1, kMaxWidth);
  config.patch_size = json.has("patch_size") ? json.at("patch_size").as_int(1, 256)
                                             : json.at("spatial_patch_size").as_int(1, 256);
  config.temporal_patch_size = json.int_or("temporal_patch_size", 2, 1, 16);
  config.spatial_merge_size = json.int_or("spatial_merge_size", 2, 1, 16);
  config.window_size = json.at("window_size").as_int(1, 1 << 16);
  config.out_hidden_size = json.at("out_hidden_size").as_int(1, kMaxWidth);
  config.fullatt_block_indexes = json.at("fullatt_block_indexes").as_ints(0, config.depth - 1);

  const char* channels = json.has("in_channels") ? "in_channels" : "in_chans";
  expect(json, json.int_or(channels, 3) == 3, "only images of 3 channels are supported");
  expect(json, json.string_or("hidden_act", "silu") == "silu", "hidden_act must be silu");
  expect(json, config.hidden_size % config.num_heads == 0, "hidden_size is no multiple of num_heads");
  expect(json, config.head_dim() % 4 == 0, "hidden_size / num_heads must be a multiple of 4");
  expect(json, config.window_cells() >= 1, "window_size is smaller than one merged patch");
  return config;
}

/// The three sections; `rope` is rope_scaling or rope_parameters.
std::array<int64_t, 3> parse_mrope(const JsonView& rope) {
  const char* type_key = rope.has_value("rope_type") ? "rope_type" : "type";
  const auto type = rope.string_or(type_key, "mrope");
  expect(rope, type == "mrope" || type == "default", "the rope type must be mrope or default, found " + type);
  const auto sections = rope.at("mrope_section");
  const auto values = sections.as_ints(0, kMaxWidth);
  expect(sections, values.size() == 3, "expected three numbers: t, h, w");
  return {values[0], values[1], values[2]};
}

TextConfig parse_text(const JsonView& json) {
  TextConfig config;
  config.hidden_size = json.at("hidden_size").as_int(1, kMaxWidth);
  config.num_hidden_layers = json.at("num_hidden_layers").as_int(1, kMaxDepth);
  config.num_attention_heads = json.at("num_attention_heads").as_int(1, kMaxWidth);
  config.num_key_value_heads = json.int_or("num_key_value_heads", config.num_attention_heads, 1, kMaxWidth);
  config.intermediate_size = json.at("intermediate_size").as_int(1, kMaxWidth);
  config.vocab_size = json.at("vocab_size").as_int(1, kMaxVocabulary);
  config.max_position_embeddings = json.at("max_position_embeddings").as_int(1, 1 << 26);
  config.rms_norm_eps = json.at("rms_norm_eps").as_double(0, 1);

  expect(json, json.string_or("hidden_act", "silu") == "silu", "hidden_act must be silu");
  expect(json, !json.bool_or("use_sliding_window", false), "use_sliding_window is not supported");
  if (json.has_value("layer_types")) {
    const auto types = json.at("layer_types");
    for (size_t i = 0; i < types.size(); ++i) {
      expect(types.at(i), types.at(i).as_string() == "full_attention", "only full_attention is supported");
    }
  }
  expect(json, config.hidden_size % config.num_attention_heads == 0,
         "hidden_size is no multiple of num_attention_heads");
  expect(json, config.head_dim() % 2 == 0, "hidden_size / num_attention_heads must be even");
  expect(json, json.int_or("head_dim", config.head_dim()) == config.head_dim(),
         "head_dim must be hidden_size / num_attention_heads");
  expect(json, config.num_attention_heads % config.num_key_value_heads == 0,
         "num_attention_heads is no multiple of num_key_value_heads");

  const bool has_parameters = json.has_value("rope_parameters");
  const auto rope = json.at(has_parameters ? "rope_parameters" : "rope_scaling");
  config.mrope_section = parse_mrope(rope);
  config.rope_theta = (rope.has("rope_theta") ? rope : json).at("rope_theta").as_double(1, 1e12);
  const auto pairs = std::accumulate(config.mrope_section.begin(), config.mrope_section.end(), int64_t{0});
  expect(rope, pairs == config.head_dim() / 2,
         "mrope_section adds up to " + std::to_string(pairs) + ", half of the head is " +
             std::to_string(config.head_dim() / 2));
  return config;
}

}  // namespace

bool VisionConfig::is_full_attention(int64_t block) const {
  return std::find(fullatt_block_indexes.begin(), fullatt_block_indexes.end(), block) !=
         fullatt_block_indexes.end();
}

int64_t VisionConfig::leading_window_blocks() const {
  return fullatt_block_indexes.empty()
             ? depth
             : *std::min_element(fullatt_block_indexes.begin(), fullatt_block_indexes.end());
}

ModelConfig ModelConfig::parse(const JsonView& root) {
  const auto type = root.at("model_type").as_string();
  expect(root, type == "qwen2_5_vl", "the architecture '" + type + "' is not supported; expected qwen2_5_vl");
  ModelConfig config;
  config.text = parse_text(root.has_value("text_config") ? root.at("text_config") : root);
  config.vision = parse_vision(root.at("vision_config"));
  config.image_token_id = root.at("image_token_id").as_int(0, config.text.vocab_size - 1);
  config.video_token_id = root.int_or("video_token_id", -1, -1, config.text.vocab_size - 1);
  expect(root, config.vision.out_hidden_size == config.text.hidden_size,
         "vision_config.out_hidden_size differs from the text model's hidden_size");
  return config;
}

ModelConfig ModelConfig::read(const std::filesystem::path& folder) {
  const auto path = folder / "config.json";
  const auto document = read_json_file(path);
  return parse(JsonView(document, path.string()));
}

namespace {

std::array<double, 3> parse_channels(const JsonView& json, double min) {
  expect(json, json.size() == 3, "expected three numbers");
  std::array<double, 3> values{};
  for (size_t i = 0; i < 3; ++i) values[i] = json.at(i).as_double(min, 1);
  return values;
}

}  // namespace

PreprocessorConfig PreprocessorConfig::parse(const JsonView& root, const VisionConfig& vision) {
  constexpr int64_t kMaxPixels = int64_t{1} << 32;
  PreprocessorConfig config;
  if (root.has_value("size")) {
    // Pixel counts in spite of the names.
    config.min_pixels = root.at("size").int_or("shortest_edge", config.min_pixels, 1, kMaxPixels);
    config.max_pixels = root.at("size").int_or("longest_edge", config.max_pixels, 1, kMaxPixels);
  }
  config.min_pixels = root.int_or("min_pixels", config.min_pixels, 1, kMaxPixels);
  config.max_pixels = root.int_or("max_pixels", config.max_pixels, 1, kMaxPixels);
  if (root.has_value("image_mean")) config.image_mean = parse_channels(root.at("image_mean"), 0);
  if (root.has_value("image_std")) config.image_std = parse_channels(root.at("image_std"), 1e-6);
  expect(root, config.min_pixels <= config.max_pixels, "min_pixels is larger than max_pixels");
  expect(root, root.int_or("patch_size", vision.patch_size) == vision.patch_size,
         "patch_size differs from config.json");
  expect(root, root.int_or("merge_size", vision.spatial_merge_size) == vision.spatial_merge_size,
         "merge_size differs from config.json");
  expect(root, root.int_or("temporal_patch_size", vision.temporal_patch_size) == vision.temporal_patch_size,
         "temporal_patch_size differs from config.json");
  expect(root, root.int_or("resample", 3) == 3, "resample must be 3 (bicubic)");
  for (const char* key : {"do_resize", "do_rescale", "do_normalize"}) {
    expect(root, root.bool_or(key, true), std::string(key) + " must be true");
  }
  expect(root, std::abs(root.double_or("rescale_factor", 1.0 / 255) * 255 - 1) < 1e-6,
         "rescale_factor must be 1/255");
  return config;
}

PreprocessorConfig PreprocessorConfig::read(const std::filesystem::path& folder, const VisionConfig& vision) {
  const auto path = folder / "preprocessor_config.json";
  if (!std::filesystem::exists(path)) return {};
  const auto document = read_json_file(path);
  return parse(JsonView(document, path.string()), vision);
}

}  // namespace boq::vlm
