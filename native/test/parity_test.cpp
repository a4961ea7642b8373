// Every part of the forward pass against what transformers computed (test/parity/make_fixtures.py).
#include <ATen/ATen.h>
#include <c10/core/InferenceMode.h>

#include <cstdlib>
#include <map>
#include <sstream>

#include "doctest/doctest.h"
#include "native/core/device.h"
#include "native/core/safetensors.h"
#include "native/test/counter_weights.h"
#include "native/test/temporary_folder.h"
#include "native/vlm/embedder.h"
#include "native/vlm/model.h"
#include "native/vlm/pooling.h"

using namespace boq;
using boq::test::counter_image;

namespace {

/// Those of the repository, and those of the folder BOQ_PARITY_WIDE where it is set (see
/// test/parity/README.md).
std::vector<std::filesystem::path> fixtures() {
  std::vector<std::filesystem::path> folders;
  for (const char* name : {"heads-128-80", "grouped", "deep"})
    folders.push_back(test::parity_fixtures() / name);
  if (const char* wide = std::getenv("BOQ_PARITY_WIDE")) {
    for (const auto& entry : std::filesystem::directory_iterator(wide)) folders.push_back(entry.path());
  }
  return folders;
}

const std::vector<std::string> kCases = {"text",
                                         "one-token",
                                         "image-whole-windows",
                                         "image-ragged-right",
                                         "image-ragged-bottom",
                                         "image-ragged-both",
                                         "two-images",
                                         "long-history"};

double relative_error(const at::Tensor& ours, const at::Tensor& reference) {
  const auto a = ours.cpu().to(at::kDouble), b = reference.to(at::kDouble);
  return ((a - b).norm() / b.norm()).item<double>();
}

double cosine(const at::Tensor& ours, const at::Tensor& reference) {
  const auto a = ours.cpu().to(at::kDouble).flatten(), b = reference.to(at::kDouble).flatten();
  return (a.dot(b) / (a.norm() * b.norm())).item<double>();
}

/// float32: relative L2 1e-5; bfloat16: cosine 0.9999.
void check_close(const std::string& what, const at::Tensor& ours, const at::Tensor& reference, bool is_bf16) {
  INFO(what);
  REQUIRE((ours.sizes() == reference.sizes()));
  if (is_bf16) {
    CHECK(cosine(ours, reference) >= 0.9999);
  } else {
    CHECK(relative_error(ours, reference) <= 1e-5);
  }
}

struct GoldenCase {
  GoldenCase(const std::filesystem::path& fixture, const std::string& name)
      : file(SafetensorsFile::open(fixture / (name + ".safetensors"))) {
    const auto ids = file.tensor("ids");
    item.ids.assign(ids.const_data_ptr<int32_t>(), ids.const_data_ptr<int32_t>() + ids.numel());
    std::istringstream images(file.metadata().at("images"));
    for (std::string text; std::getline(images, text, ';');) {
      int width = 0, height = 0, seed = 0;
      REQUIRE(std::sscanf(text.c_str(), "%dx%d:%d", &width, &height, &seed) == 3);
      item.images.push_back(counter_image(width, height, static_cast<uint64_t>(seed)));
    }
  }

  SafetensorsFile file;
  vlm::EmbedItem item;
};

/// Writes a fixture's checkpoint once and loads it in any type.
struct GoldenModel {
  explicit GoldenModel(const std::filesystem::path& fixture) {
    test::write_checkpoint(read_json_file(fixture / "model.json"), folder.path());
  }
  test::TemporaryFolder folder;
};

std::vector<std::string> devices() {
  return cuda_problem().empty() ? std::vector<std::string>{"cpu", "cuda:0"} : std::vector<std::string>{"cpu"};
}

void compare_case(const vlm::Model& model, const std::filesystem::path& fixture, const std::string& name,
                  bool is_bf16) {
  INFO(fixture.string(), " ", name, is_bf16 ? " bfloat16" : " float32");
  const GoldenCase golden(fixture, name);
  const std::string type = is_bf16 ? "bfloat16." : "float32.";
  const CancelFlag cancel;
  const auto sequence = vlm::make_sequence(golden.item, 0, model.rules());
  auto pack = vlm::make_pack({&sequence}, model.rules());
  CHECK(at::equal(pack.text.positions.to(at::kInt), golden.file.tensor("positions")));
  const auto cells = pack.text.image_rows;
  const auto own_rows = pack.rows;

  std::map<std::string, at::Tensor> taps;
  const auto hidden = model.forward(
      std::move(pack), -1, cancel,
      [&](const std::string& tap, const at::Tensor& value) { taps[tap] = value.cpu().clone(); });
  if (golden.file.contains(type + "vision")) {
    // Ours leaves the tower in window order; image_rows says where each row belongs.
    const auto order = cells.argsort();
    check_close("vision", taps.at("vision.output").index_select(0, order),
                golden.file.tensor(type + "vision"), is_bf16);
  }
  const auto rows = golden.file.tensor("rows");
  const auto layers = model.rules().model.text.num_hidden_layers;
  for (int64_t i = 0; i <= layers; ++i) {
    const auto state = "hidden." + std::to_string(i);
    check_close(state, taps.at("text." + state).index_select(0, rows), golden.file.tensor(type + state),
                is_bf16);
  }
  const auto pooled = vlm::pool(hidden, {&sequence}, own_rows, vlm::Pooling::kMean,
                                model.rules().model.image_token_id, false);
  check_close("pooled", pooled[0], golden.file.tensor(type + "pooled"), is_bf16);
}

}  // namespace

TEST_CASE("parity: float32 and bfloat16, every model, case, layer and device") {
  const c10::InferenceMode inference;
  const CancelFlag cancel;
  for (const auto& fixture : fixtures()) {
    const GoldenModel golden(fixture);
    for (const auto& device : devices()) {
      for (const bool is_bf16 : {false, true}) {
        const auto model = vlm::Model::load(golden.folder.path(), parse_device(device),
                                            is_bf16 ? "bfloat16" : "float32", cancel);
        for (const auto& name : kCases) compare_case(model, fixture, name, is_bf16);
      }
    }
  }
}

TEST_CASE("parity: packed items equal one-by-one calls, in any order") {
  const CancelFlag cancel;
  for (const auto& fixture : fixtures()) {
    const GoldenModel golden(fixture);
    for (const auto& dtype : {"float32", "bfloat16"}) {
      INFO(fixture.string(), " ", dtype);
      vlm::EmbedderOptions options;
      options.path = golden.folder.path();
      options.device = "cpu";
      options.dtype = dtype;
      const auto embedder = vlm::Embedder::load(options, cancel);
      std::vector<vlm::EmbedItem> items;
      for (const int round : {0, 1, 2}) {
        for (const auto& name : kCases) items.push_back(GoldenCase(fixture, name).item);
        items.back().ids.resize(items.back().ids.size() - static_cast<size_t>(7 * round));
      }
      const auto packed = embedder->embed(items, cancel);
      REQUIRE(packed.vectors.size(0) == static_cast<int64_t>(items.size()));
      for (size_t i = 0; i < items.size(); ++i) {
        INFO("item ", i);
        const auto alone = embedder->embed({items[i]}, cancel);
        CHECK(alone.tokens[0] == packed.tokens[i]);
        check_close("packed", packed.vectors[static_cast<int64_t>(i)], alone.vectors[0],
                    std::string(dtype) == "bfloat16");
      }
    }
  }
}

TEST_CASE("parity: pixels are bitwise those of the torchvision-backend processor") {
  const auto fixture = read_json_file(test::parity_fixtures() / "pixels.json");
  vlm::VisionConfig config;
  config.patch_size = 14;
  config.spatial_merge_size = 2;
  for (const auto& entry : fixture["cases"]) {
    const auto width = entry["width"].get<int64_t>(), height = entry["height"].get<int64_t>();
    INFO(width, "x", height);
    const auto image = counter_image(width, height, static_cast<uint64_t>(width + height));
    const auto size = vlm::smart_resize({height, width}, 28, entry["minPixels"].get<int64_t>(),
                                        entry["maxPixels"].get<int64_t>());
    const auto rows = size.height / 14, columns = size.width / 14;
    REQUIRE(entry["grid"].get<std::vector<int64_t>>() == std::vector<int64_t>{rows, columns});
    std::vector<int64_t> raster(static_cast<size_t>(rows * columns / 4));
    for (size_t i = 0; i < raster.size(); ++i) raster[i] = static_cast<int64_t>(i);
    auto patches = at::empty({rows * columns, 3, 1, 196}, at::kFloat);
    vlm::write_patch_rows(vlm::resize_bicubic(image, size), config, vlm::make_normalize_table({}), raster,
                          patches.data_ptr<float>());
    patches = patches.expand({-1, -1, 2, -1}).contiguous();
    const auto hash = test::fnv1a({static_cast<const char*>(patches.const_data_ptr()), patches.nbytes()});
    char text[17];
    std::snprintf(text, sizeof text, "%016lx", static_cast<unsigned long>(hash));
    CHECK(std::string(text) == entry["hash"].get<std::string>());
  }
}
