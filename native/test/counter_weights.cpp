#include "native/test/counter_weights.h"

#include <ATen/ATen.h>

#include <cmath>
#include <fstream>

#include "native/core/safetensors.h"

namespace boq::test {

uint64_t fnv1a(std::string_view bytes) {
  uint64_t value = 0xCBF29CE484222325u;
  for (const char byte : bytes) value = (value ^ static_cast<uint8_t>(byte)) * 0x100000001B3u;
  return value;
}

uint64_t counter_bits(uint64_t seed, uint64_t index) {
  uint64_t z = seed + (index + 1) * 0x9E3779B97F4A7C15u;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  return z ^ (z >> 31);
}

at::Tensor counter_weight(const std::string& name, const std::vector<int64_t>& shape) {
  auto tensor = at::empty(shape, at::kFloat);
  auto* values = tensor.data_ptr<float>();
  const auto seed = fnv1a(name);
  const bool is_norm = name.find("norm") != std::string::npos || name.find("ln_q") != std::string::npos;
  int64_t fan_in = 1;
  for (size_t i = 1; i < shape.size(); ++i) fan_in *= shape[i];
  if (shape.size() == 1) fan_in = 64;
  int exponent = 7 + static_cast<int>(std::nearbyint(std::log2(static_cast<double>(fan_in)) / 2));
  if (name.find("embed_tokens") != std::string::npos) exponent = 6;
  for (int64_t i = 0; i < tensor.numel(); ++i) {
    const auto bits = counter_bits(seed, static_cast<uint64_t>(i));
    values[i] = is_norm ? 1.0f + static_cast<float>(bits >> 58) / 128.0f
                        : std::ldexp(static_cast<float>(bits >> 56) - 128.0f, -exponent);
  }
  return tensor;
}

vlm::RgbImage counter_image(int64_t width, int64_t height, uint64_t seed) {
  vlm::RgbImage image{{}, width, height};
  image.data.reserve(static_cast<size_t>(width * height * 3));
  for (int64_t y = 0; y < height; ++y) {
    for (int64_t x = 0; x < width; ++x) {
      for (int64_t c = 0; c < 3; ++c) {
        const auto base = x * (c + 2) + y * 3 + static_cast<int64_t>(seed) * 17;
        const auto edge = (x / 16 + y / 16) % 2 * 90;
        const auto noise = static_cast<int64_t>(counter_bits(seed, image.data.size()) & 31);
        image.data.push_back(static_cast<uint8_t>(base + edge + noise));
      }
    }
  }
  return image;
}

std::filesystem::path parity_fixtures() {
  return std::filesystem::path(BOQ_SOURCE_DIR) / "test" / "fixtures" / "parity";
}

void write_checkpoint(const Json& model, const std::filesystem::path& folder) {
  const auto type = model["dtype"] == "BF16"  ? at::kBFloat16
                    : model["dtype"] == "F16" ? at::kHalf
                                              : at::kFloat;
  const auto shards = model["shards"].get<size_t>();
  std::vector<NamedTensors> files(shards);
  Json map = Json::object();
  const auto shard_name = [&](size_t i) {
    return shards == 1 ? std::string("model.safetensors") : "part-" + std::to_string(i) + ".safetensors";
  };
  size_t next = 0;
  for (const auto& tensor : model["tensors"]) {
    const auto shard = next++ % shards;
    const auto value = counter_weight(tensor["name"], tensor["shape"].get<std::vector<int64_t>>());
    files[shard].emplace_back(tensor["file"].get<std::string>(), value.to(type));
    map[tensor["file"].get<std::string>()] = shard_name(shard);
  }
  for (size_t i = 0; i < shards; ++i) write_safetensors(folder / shard_name(i), files[i], {{"format", "pt"}});
  if (shards > 1) {
    std::ofstream(folder / "model.safetensors.index.json")
        << Json{{"metadata", Json::object()}, {"weight_map", map}};
  }
  std::ofstream(folder / "config.json") << model["config"];
}

}  // namespace boq::test
