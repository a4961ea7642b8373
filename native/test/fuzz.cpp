#include "native/test/fuzz.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <fstream>
#include <functional>

#include "native/core/error.h"
#include "native/core/json.h"
#include "native/core/safetensors.h"
#include "native/test/counter_weights.h"
#include "native/vlm/config.h"
#include "native/vlm/image.h"

namespace boq::test {

namespace {

/// Numbers of one input.
class Dice {
 public:
  Dice(uint64_t seed, int64_t input) : seed_(counter_bits(seed, static_cast<uint64_t>(input))) {}
  uint64_t next() { return counter_bits(seed_, count_++); }
  /// In [0, limit).
  size_t below(size_t limit) { return limit == 0 ? 0 : static_cast<size_t>(next() % limit); }

 private:
  uint64_t seed_;
  uint64_t count_ = 0;
};

const std::vector<std::string> kPieces = {"{",
                                          "}",
                                          "[",
                                          "]",
                                          "\"",
                                          ":",
                                          ",",
                                          "null",
                                          "true",
                                          "-1",
                                          "0",
                                          "1",
                                          "1e308",
                                          "-1e-5",
                                          "9223372036854775807",
                                          "9223372036854775808",
                                          "18446744073709551616",
                                          "4294967296",
                                          "\"dtype\"",
                                          "\"shape\"",
                                          "\"data_offsets\"",
                                          "\"BF16\"",
                                          "\"F32\"",
                                          "\"BOOL\"",
                                          "\"__metadata__\"",
                                          "\\u0000",
                                          "\\ud800",
                                          "\xff\xfe",
                                          "[[[[[[[[",
                                          "{\"a\":{\"a\":{\"a\":",
                                          std::string(1, '\0'),
                                          "\"hidden_size\"",
                                          "\"depth\":",
                                          "1000000000000"};

/// One to four changes: flipped bits, other bytes, pieces put in, parts cut, repeated or moved.
std::string mutate(std::string text, Dice& dice) {
  for (auto changes = 1 + dice.below(4); changes > 0; --changes) {
    const auto at = dice.below(text.size() + 1);
    const auto length = std::min(dice.below(1 + dice.below(40)), text.size() - at);
    switch (dice.below(7)) {
      case 0:
        if (at < text.size()) text[at] = static_cast<char>(text[at] ^ (1 << dice.below(8)));
        break;
      case 1:
        if (at < text.size()) text[at] = static_cast<char>(dice.next());
        break;
      case 2:
        text.insert(at, kPieces[dice.below(kPieces.size())]);
        break;
      case 3:
        text.erase(at, length);
        break;
      case 4:
        text.insert(at, text.substr(at, length));
        break;
      case 5:
        text.replace(at, length, kPieces[dice.below(kPieces.size())]);
        break;
      default:
        if (dice.below(4) == 0) text.resize(at);
    }
  }
  return text;
}

std::string readable(std::string_view text) {
  std::string out;
  for (const char byte : text.substr(0, 200)) out += byte >= ' ' && byte <= '~' ? byte : '?';
  return out;
}

/// Counts what `read` does with each input.
FuzzTally run(const std::string& target, int64_t inputs, uint64_t seed,
              const std::function<std::string(Dice&)>& make,
              const std::function<void(const std::string&)>& read) {
  FuzzTally tally{target, 0, 0, {}};
  const auto finding = [&](const std::string& what, const std::string& input) {
    if (tally.findings.size() < 5) tally.findings.push_back(what + " for " + readable(input));
  };
  for (int64_t i = 0; i < inputs; ++i) {
    Dice dice(seed ^ fnv1a(target), i);
    const auto input = make(dice);
    try {
      read(input);
      ++tally.taken;
    } catch (const Error& error) {
      ++tally.refused;
      if (std::string(error.what()).empty()) finding("an error without a message", input);
    } catch (const std::exception& error) {
      finding(std::string("a foreign exception: ") + error.what(), input);
    }
  }
  return tally;
}

std::string valid_file() {
  const std::string header =
      R"({"__metadata__":{"format":"pt"},"a":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]},)"
      R"("b":{"dtype":"BF16","shape":[4],"data_offsets":[24,32]},"c":{"dtype":"BOOL","shape":[3],"data_offsets":[32,35]},)"
      R"("d":{"dtype":"I64","shape":[0],"data_offsets":[35,35]}})";
  std::string file(8, '\0');
  for (size_t i = 0; i < 8; ++i) file[i] = static_cast<char>(header.size() >> (8 * i));
  return file + header + std::string(35, '\x41');
}

/// A header is read alone; the whole file is opened as well, and every byte of its tensors read.
FuzzTally fuzz_header(int64_t inputs, uint64_t seed) {
  const auto file = valid_file();
  const auto header = file.substr(8, file.size() - 8 - 35);
  return run(
      "safetensors header", inputs, seed, [&](Dice& dice) { return mutate(header, dice); },
      [](const std::string& text) {
        const auto parsed = parse_safetensors_header(text, 35, "input");
        for (const auto& info : parsed.tensors) {
          if (info.end > 35 || info.begin > info.end) throw std::logic_error("a tensor beyond the data");
        }
      });
}

FuzzTally fuzz_file(int64_t inputs, uint64_t seed, const std::filesystem::path& folder) {
  const auto valid = valid_file();
  const auto path = folder / "input.safetensors";
  return run(
      "safetensors file", inputs, seed, [&](Dice& dice) { return mutate(valid, dice); },
      [&](const std::string& bytes) {
        std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
        const auto file = SafetensorsFile::open(path);
        uint64_t sum = 0;
        for (const auto& name : file.names()) {
          const auto tensor = file.tensor(name);
          const auto* data = static_cast<const uint8_t*>(tensor.const_data_ptr());
          for (size_t i = 0; i < tensor.nbytes(); ++i) sum += data[i];
          file.release(name);
        }
        if (sum > bytes.size() * 255) throw std::logic_error("more bytes than the file has");
      });
}

FuzzTally fuzz_config(int64_t inputs, uint64_t seed) {
  std::vector<std::string> valid;
  for (const char* name : {"heads-128-80", "grouped", "deep"}) {
    valid.push_back(read_json_file(parity_fixtures() / name / "model.json")["config"].dump());
  }
  return run(
      "config.json", inputs, seed, [&](Dice& dice) { return mutate(valid[dice.below(valid.size())], dice); },
      [](const std::string& text) {
        const auto json = parse_json(text, "config.json");
        const auto config = vlm::ModelConfig::parse(JsonView(json, "config.json"));
        // What the rest of the program divides by.
        const auto& vision = config.vision;
        const bool is_sound = vision.head_dim() > 0 && vision.window_cells() > 0 &&
                              vision.patches_per_cell() > 0 && config.text.head_dim() > 0 &&
                              config.text.num_key_value_heads > 0;
        if (!is_sound) throw std::logic_error("a config that cannot be computed with was taken");
      });
}

FuzzTally fuzz_preprocessor(int64_t inputs, uint64_t seed) {
  const std::string valid =
      R"({"min_pixels":3136,"max_pixels":12845056,"patch_size":14,"temporal_patch_size":2,"merge_size":2,"resample":3,)"
      R"("image_mean":[0.48,0.45,0.40],"image_std":[0.26,0.26,0.27],"do_resize":true,"do_normalize":true,)"
      R"("size":{"shortest_edge":3136,"longest_edge":12845056}})";
  vlm::VisionConfig vision;
  vision.patch_size = 14;
  vision.temporal_patch_size = 2;
  vision.spatial_merge_size = 2;
  return run(
      "preprocessor_config.json", inputs, seed, [&](Dice& dice) { return mutate(valid, dice); },
      [&](const std::string& text) {
        const auto json = parse_json(text, "preprocessor_config.json");
        const auto config =
            vlm::PreprocessorConfig::parse(JsonView(json, "preprocessor_config.json"), vision);
        vlm::make_normalize_table(config);
        if (config.min_pixels < 1 || config.max_pixels < config.min_pixels)
          throw std::logic_error("absurd limits");
      });
}

/// "width height bytes min max": sizes of every kind, most of them nonsense.
std::string image_case(Dice& dice) {
  const auto side = [&]() -> int64_t {
    switch (dice.below(8)) {
      case 0:
        return static_cast<int64_t>(dice.next());
      case 1:
        return -static_cast<int64_t>(dice.below(3));
      case 2:
        return static_cast<int64_t>(dice.below(1 << 22));
      case 3:
        return 1;
      default:
        return 1 + static_cast<int64_t>(dice.below(300));
    }
  };
  const auto width = side(), height = side();
  const bool fits = width > 0 && height > 0 && width <= 4096 && height <= 4096 && width * height <= 90000;
  auto bytes = fits ? width * height * 3 : static_cast<int64_t>(dice.below(1000));
  if (dice.below(6) == 0) bytes += static_cast<int64_t>(dice.below(7)) - 3;
  const auto min = 1 + static_cast<int64_t>(dice.below(6000));
  const auto max = min + static_cast<int64_t>(dice.below(14000));
  return std::to_string(width) + " " + std::to_string(height) + " " +
         std::to_string(std::max<int64_t>(bytes, 0)) + " " + std::to_string(min) + " " + std::to_string(max) +
         " " + std::to_string(dice.next());
}

FuzzTally fuzz_image(int64_t inputs, uint64_t seed) {
  vlm::VisionConfig vision;
  vision.patch_size = 14;
  vision.spatial_merge_size = 2;
  const auto table = vlm::make_normalize_table({});
  return run("image", inputs, seed, image_case, [&](const std::string& text) {
    long long width = 0, height = 0, bytes = 0, min = 0, max = 0;
    unsigned long long noise = 0;
    std::sscanf(text.c_str(), "%lld %lld %lld %lld %lld %llu", &width, &height, &bytes, &min, &max, &noise);
    vlm::RgbImage image{std::vector<uint8_t>(static_cast<size_t>(bytes)), width, height};
    for (size_t i = 0; i < image.data.size(); ++i) image.data[i] = static_cast<uint8_t>(noise >> (i % 57));
    vlm::check_image(image);
    const auto size = vlm::smart_resize({height, width}, 28, min, max);
    if (size.height < 28 || size.width < 28 || size.height % 28 != 0 || size.width % 28 != 0) {
      throw std::logic_error("a size that no patches fit");
    }
    const auto resized = vlm::resize_bicubic(image, size);
    std::vector<int64_t> cells(static_cast<size_t>(size.height / 28 * (size.width / 28)));
    for (size_t i = 0; i < cells.size(); ++i) cells[i] = static_cast<int64_t>(i);
    std::vector<float> rows(cells.size() * 4 * 3 * 196);
    vlm::write_patch_rows(resized, vision, table, cells, rows.data());
  });
}

}  // namespace

std::vector<FuzzTally> fuzz_all(int64_t inputs, uint64_t seed, const std::filesystem::path& folder) {
  return {fuzz_header(inputs, seed), fuzz_file(inputs, seed, folder), fuzz_config(inputs, seed),
          fuzz_preprocessor(inputs, seed), fuzz_image(inputs, seed)};
}

}  // namespace boq::test
