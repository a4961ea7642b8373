// Weights and images as pure functions of a name and an index; test/parity/counter.py makes the same.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "native/core/json.h"
#include "native/vlm/image.h"

namespace boq::test {

uint64_t fnv1a(std::string_view bytes);
/// splitmix64 of `seed` at position `index`.
uint64_t counter_bits(uint64_t seed, uint64_t index);
/// float32, every value exact in bfloat16.
at::Tensor counter_weight(const std::string& name, const std::vector<int64_t>& shape);
vlm::RgbImage counter_image(int64_t width, int64_t height, uint64_t seed);

/// Folder with the golden files.
std::filesystem::path parity_fixtures();

/// Writes the checkpoint that a fixture's model.json describes: config.json and the shards.
void write_checkpoint(const Json& model, const std::filesystem::path& folder);

}  // namespace boq::test
