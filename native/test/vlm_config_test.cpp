#include "native/vlm/config.h"

#include "doctest/doctest.h"
#include "native/test/counter_weights.h"
#include "native/test/expect_error.h"

using namespace boq;
using boq::test::expect_error;

namespace {

Json good_config(const std::string& model = "grouped") {
  return read_json_file(test::parity_fixtures() / model / "model.json")["config"];
}

void refuse(const Json& config, const std::string& message) {
  INFO(config.dump());
  expect_error(ErrorCode::kConfigInvalid, message,
               [&] { vlm::ModelConfig::parse(JsonView(config, "config.json")); });
}

/// The flat config with one member of `section` ("" is the top) replaced.
Json with(const std::string& section, const std::string& key, Json value) {
  auto config = good_config();
  (section.empty() ? config : config[section])[key] = std::move(value);
  return config;
}

Json without(const std::string& section, const std::string& key) {
  auto config = good_config();
  (section.empty() ? config : config[section]).erase(key);
  return config;
}

}  // namespace

TEST_CASE("config: three generations of the file are read alike") {
  for (const auto* model : {"grouped", "heads-128-80", "deep"}) {
    const auto json = good_config(model);
    const auto config = vlm::ModelConfig::parse(JsonView(json, "config.json"));
    CHECK(config.text.vocab_size == 512);
    CHECK(config.image_token_id == 505);
    CHECK(config.video_token_id == 506);
    CHECK(config.vision.window_cells() >= 2);
    CHECK(config.vision.is_full_attention(config.vision.fullatt_block_indexes[0]));
  }
  const auto json = good_config("deep");
  const auto config = vlm::ModelConfig::parse(JsonView(json, "config.json"));
  CHECK(config.text.rope_theta == 1e4);
  CHECK((config.text.mrope_section == std::array<int64_t, 3>{4, 2, 2}));
  CHECK_FALSE(config.vision.is_full_attention(0));
}

TEST_CASE("config: what is not understood is refused with file and key") {
  refuse(with("", "model_type", "qwen2_vl"), "'qwen2_vl' is not supported");
  refuse(with("", "hidden_act", "gelu"), "hidden_act must be silu");
  refuse(with("", "use_sliding_window", true), "use_sliding_window");
  refuse(with("", "layer_types", Json::array({"sliding_attention"})), "layer_types[0]");
  refuse(with("", "head_dim", 32), "head_dim");
  refuse(with("rope_scaling", "type", "yarn"), "found yarn");
  refuse(with("rope_scaling", "mrope_section", Json::array({2, 3, 4})),
         "adds up to 9, half of the head is 8");
  refuse(with("rope_scaling", "mrope_section", Json::array({8})), "three numbers");
  refuse(with("rope_scaling", "mrope_section", Json::array({-1, 4, 5})), "mrope_section[0]");
  refuse(with("vision_config", "hidden_act", "quick_gelu"), "vision_config: hidden_act");
  refuse(with("vision_config", "in_chans", 4), "3 channels");
  refuse(without("", "hidden_size"), "'hidden_size' is missing");
  refuse(without("", "rope_scaling"), "'rope_scaling' is missing");
  refuse(without("", "vision_config"), "'vision_config' is missing");
  refuse(without("", "image_token_id"), "'image_token_id' is missing");
  refuse(without("vision_config", "fullatt_block_indexes"), "'fullatt_block_indexes' is missing");
  refuse(Json::array(), "expected an object");
}

TEST_CASE("config: absurd numbers are refused before anything is allocated") {
  for (const auto& value :
       {Json(0), Json(-1), Json(1'000'000'000'000), Json(1.5), Json("96"), Json(nullptr)}) {
    for (const auto* key :
         {"hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size", "vocab_size"}) {
      refuse(with("", key, value), std::string("config.json: ") + key);
    }
    for (const auto* key :
         {"depth", "hidden_size", "num_heads", "patch_size", "window_size", "out_hidden_size"}) {
      refuse(with("vision_config", key, value), std::string("config.json: vision_config.") + key);
    }
  }
  refuse(with("", "num_attention_heads", 7), "no multiple of num_attention_heads");
  refuse(with("", "num_key_value_heads", 4), "no multiple of num_key_value_heads");
  refuse(with("", "image_token_id", 512), "image_token_id");
  refuse(with("", "rms_norm_eps", -1e-6), "rms_norm_eps");
  refuse(with("", "rope_theta", 0), "rope_theta");
  refuse(with("vision_config", "num_heads", 5), "no multiple of num_heads");
  refuse(with("vision_config", "num_heads", 24), "multiple of 4");
  refuse(with("vision_config", "window_size", 27), "smaller than one merged patch");
  refuse(with("vision_config", "fullatt_block_indexes", Json::array({3})), "fullatt_block_indexes[0]");
  refuse(with("vision_config", "out_hidden_size", 64), "out_hidden_size differs");
}

TEST_CASE("config: pixel rules are read, foreign ones refused") {
  const auto config = good_config();
  const auto vision = vlm::ModelConfig::parse(JsonView(config, "config.json")).vision;
  const auto parse = [&](const Json& json) {
    return vlm::PreprocessorConfig::parse(JsonView(json, "p.json"), vision);
  };
  CHECK(parse(Json::object()).max_pixels == 12845056);
  CHECK(parse({{"min_pixels", 4000}, {"max_pixels", 5000}}).min_pixels == 4000);
  CHECK(parse({{"size", {{"shortest_edge", 10}, {"longest_edge", 20}}}}).max_pixels == 20);
  const auto refuse_rules = [&](const Json& json, const std::string& message) {
    expect_error(ErrorCode::kConfigInvalid, message, [&] { parse(json); });
  };
  refuse_rules({{"resample", 2}}, "bicubic");
  refuse_rules({{"do_resize", false}}, "do_resize");
  refuse_rules({{"do_normalize", false}}, "do_normalize");
  refuse_rules({{"patch_size", 16}}, "patch_size differs");
  refuse_rules({{"merge_size", 4}}, "merge_size differs");
  refuse_rules({{"temporal_patch_size", 1}}, "temporal_patch_size differs");
  refuse_rules({{"rescale_factor", 1}}, "rescale_factor");
  refuse_rules({{"image_std", {0, 1, 1}}}, "image_std[0]");
  refuse_rules({{"image_mean", {0.5}}}, "three numbers");
  refuse_rules({{"min_pixels", 10}, {"max_pixels", 5}}, "larger than max_pixels");
}
