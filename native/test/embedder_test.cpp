#include "native/vlm/embedder.h"

#include <ATen/ATen.h>

#include <fstream>
#include <functional>

#include "doctest/doctest.h"
#include "native/core/weights.h"
#include "native/test/counter_weights.h"
#include "native/test/expect_error.h"
#include "native/test/temporary_folder.h"
#include "native/vlm/model.h"

using namespace boq;
using boq::test::expect_error;

namespace {

constexpr int32_t kImageToken = 505;

Json fixture() { return read_json_file(test::parity_fixtures() / "grouped" / "model.json"); }

std::shared_ptr<vlm::Embedder> load(const std::filesystem::path& folder, vlm::EmbedderOptions options = {}) {
  options.path = folder;
  options.device = "cpu";
  return vlm::Embedder::load(options, CancelFlag());
}

/// A folder with the checkpoint of the fixture after `edit`.
struct Checkpoint {
  explicit Checkpoint(const std::function<void(Json&)>& edit = [](Json&) {}) {
    auto model = fixture();
    edit(model);
    test::write_checkpoint(model, folder.path());
  }
  test::TemporaryFolder folder;
};

vlm::EmbedItem text_item(std::vector<int32_t> ids) { return {std::move(ids), {}}; }
vlm::EmbedItem image_item(int64_t width, int64_t height) {
  return {{1, 2, kImageToken, 3}, {test::counter_image(width, height, 5)}};
}

}  // namespace

TEST_CASE("embedder: says what it loaded") {
  const Checkpoint checkpoint;
  const auto info = load(checkpoint.folder.path())->info();
  CHECK(info.width == 96);
  CHECK(info.layers == 3);
  CHECK(info.device == "cpu");
  CHECK(info.dtype == "float32");
  CHECK(info.max_tokens == 2048);
  CHECK(info.image_token_id == kImageToken);
  int64_t parameters = 0;
  const auto model = fixture();
  for (const auto& tensor : model["tensors"]) {
    int64_t count = 1;
    for (const auto& dim : tensor["shape"]) count *= dim.get<int64_t>();
    parameters += count;
  }
  CHECK(info.parameter_count == parameters);
}

TEST_CASE("embedder: wrong items are refused by number and it stays usable") {
  const Checkpoint checkpoint;
  const auto embedder = load(checkpoint.folder.path());
  const auto good = text_item({5, 6, 7});
  const auto before = embedder->embed({good}, CancelFlag()).vectors;
  const auto refuse = [&](ErrorCode code, const std::string& message, vlm::EmbedItem bad) {
    expect_error(code, message, [&] { embedder->embed({good, std::move(bad)}, CancelFlag()); });
    CHECK(at::equal(embedder->embed({good}, CancelFlag()).vectors, before));
  };
  const auto invalid = ErrorCode::kInvalidArgument, image = ErrorCode::kImageInvalid;
  refuse(invalid, "item 1: holds no token ids", text_item({}));
  refuse(invalid, "item 1: token id 512 at 1", text_item({1, 512}));
  refuse(invalid, "item 1: token id -1 at 0", text_item({-1}));
  refuse(invalid, "stands for a video", text_item({506}));
  refuse(invalid, "item 1: 1 image token(s) for 0 image(s)", text_item({kImageToken}));
  refuse(invalid, "item 1: 1 image token(s) for 2 image(s)",
         {{kImageToken}, {test::counter_image(60, 60, 1), test::counter_image(60, 60, 2)}});
  refuse(image, "item 1, image 0: an image of 0x0", {{kImageToken}, {{{}, 0, 0}}});
  refuse(image, "needs 30000 bytes, found 3", {{kImageToken}, {{{1, 2, 3}, 100, 100}}});
  refuse(image, "more than 200 times", image_item(1, 300));
  refuse(ErrorCode::kContextOverflow, "item 1: 2049 tokens, the model's context is 2048",
         text_item(std::vector<int32_t>(2049, 1)));
  refuse(ErrorCode::kContextOverflow, "item 1: ", image_item(2000, 2000));
}

TEST_CASE("embedder: options are checked on loading") {
  const Checkpoint checkpoint;
  const auto refuse = [&](const std::string& message,
                          const std::function<void(vlm::EmbedderOptions&)>& edit) {
    vlm::EmbedderOptions options;
    edit(options);
    expect_error(ErrorCode::kInvalidArgument, message, [&] { load(checkpoint.folder.path(), options); });
  };
  refuse("pooling 'max'", [](auto& o) { o.pooling = "max"; });
  refuse("dtype 'float16'", [](auto& o) { o.dtype = "float16"; });
  refuse("hiddenLayer 4", [](auto& o) { o.hidden_layer = 4; });
  refuse("hiddenLayer -2", [](auto& o) { o.hidden_layer = -2; });
  refuse("minPixels 20000 is larger than maxPixels 10000", [](auto& o) {
    o.min_pixels = 20000;
    o.max_pixels = 10000;
  });
  refuse("must not be negative", [](auto& o) { o.max_pixels = -1; });
}

TEST_CASE("embedder: pooling, length one and hidden layers are what they say") {
  const Checkpoint checkpoint;
  const auto embed = [&](const std::string& pooling, bool l2, int64_t layer, const vlm::EmbedItem& item) {
    vlm::EmbedderOptions options;
    options.pooling = pooling;
    options.l2 = l2;
    options.hidden_layer = layer;
    return load(checkpoint.folder.path(), options)->embed({item}, CancelFlag()).vectors[0];
  };
  const auto item = image_item(112, 56);  // 8 image tokens of 11
  const auto all = embed("mean", false, -1, item), text = embed("text-mean", false, -1, item);
  const auto image = embed("image-mean", false, -1, item);
  CHECK(at::allclose(all, (text * 3 + image * 8) / 11, 1e-4, 1e-5));
  CHECK(embed("mean", true, -1, item).norm().item<float>() == doctest::Approx(1));
  CHECK(at::allclose(embed("mean", true, -1, item), all / all.norm(), 1e-4, 1e-6));
  CHECK(at::equal(embed("mean", false, 3, item), all));
  // Layer 0 is the embedding itself.
  const auto table = test::counter_weight("text.embed_tokens.weight", {512, 96});
  CHECK(at::allclose(embed("last", false, 0, text_item({4, 9})), table[9]));
  CHECK(at::allclose(embed("mean", false, 0, text_item({4, 9})), (table[4] + table[9]) / 2));
  CHECK_FALSE(at::allclose(embed("last", false, 1, text_item({4, 9})), table[9]));
  // What comes later does not change an earlier token.
  CHECK(at::allclose(embed("last", false, 2, text_item({4})), embed("mean", false, 2, text_item({4}))));

  expect_error(ErrorCode::kInvalidArgument, "needs an image",
               [&] { embed("image-mean", false, -1, text_item({1})); });
  expect_error(ErrorCode::kInvalidArgument, "needs a text token", [&] {
    embed("text-mean", false, -1, {{kImageToken}, {test::counter_image(60, 60, 1)}});
  });
}

TEST_CASE("embedder: nothing in, nothing out; a cancelled call stops") {
  const Checkpoint checkpoint;
  const auto embedder = load(checkpoint.folder.path());
  CHECK((embedder->embed({}, CancelFlag()).vectors.sizes() == at::IntArrayRef{0, 96}));
  CancelFlag cancelled;
  cancelled.cancel();
  expect_error(ErrorCode::kAborted, "aborted", [&] { embedder->embed({text_item({1})}, cancelled); });
  expect_error(ErrorCode::kAborted, "aborted", [&] {
    vlm::EmbedderOptions options;
    options.path = checkpoint.folder.path();
    vlm::Embedder::load(options, cancelled);
  });
}

TEST_CASE("weights: missing, surplus, misshapen and foreign tensors are named") {
  const auto refuse = [](ErrorCode code, const std::string& message, const std::function<void(Json&)>& edit) {
    expect_error(code, message, [&] { load(Checkpoint(edit).folder.path()); });
  };
  const auto add = [](Json& model, const std::string& file) {
    model["tensors"].push_back({{"name", file}, {"file", file}, {"shape", {2}}});
  };
  refuse(ErrorCode::kWeightsMissing, "the tensor 'vision.merger.mlp.2.bias' is missing",
         [](Json& model) { model["tensors"].erase(model["tensors"].size() - 1); });
  refuse(ErrorCode::kShapeMismatch, "config.json implies [512, 96]", [](Json& model) {
    model["tensors"][0]["shape"] = {512, 95};
  });
  refuse(ErrorCode::kWeightsUnexpected, "'model.layers.3.extra' has no place",
         [&](Json& model) { add(model, "model.layers.3.extra"); });
  refuse(ErrorCode::kWeightsUnexpected, "'decoder.x' belongs to no known part",
         [&](Json& model) { add(model, "decoder.x"); });
  refuse(ErrorCode::kWeightsUnexpected, "the same weight under two names",
         [&](Json& model) { add(model, "model.language_model.norm.weight"); });
  // These two are left out on purpose.
  const Checkpoint extended([&](Json& model) {
    add(model, "lm_head.weight");
    add(model, "model.layers.0.self_attn.rotary_emb.inv_freq");
  });
  CHECK(load(extended.folder.path())->info().width == 96);
}

TEST_CASE("weights: integers are no weights") {
  const test::TemporaryFolder folder;
  write_safetensors(folder / "model.safetensors", {{"a.x", at::ones({2}, at::kInt)}});
  const WeightScope scope(SafetensorsFolder::open(folder.path()), {{"a.", "a."}}, {});
  expect_error(ErrorCode::kDtypeUnsupported, "expected float32, bfloat16 or float16",
               [&] { scope.prefix("a").take("x", {2}); });
}

TEST_CASE("embedder: a folder that holds no model says what is missing") {
  const test::TemporaryFolder folder;
  expect_error(ErrorCode::kFileNotFound, "config.json", [&] { load(folder.path()); });
  std::ofstream(folder / "config.json") << fixture()["config"];
  expect_error(ErrorCode::kFileNotFound, "holds neither model.safetensors", [&] { load(folder.path()); });
  folder.write("model.safetensors", "not a tensor file");
  expect_error(ErrorCode::kFileCorrupt, "model.safetensors", [&] { load(folder.path()); });
}

TEST_CASE("model: the automatic type is bfloat16 only where it pays") {
  const at::Device cpu(at::kCPU);
  CHECK((vlm::choose_dtype("auto", cpu, at::kFloat, 4096) == at::kFloat));
  CHECK((vlm::choose_dtype("auto", cpu, at::kBFloat16, 64) == at::kFloat));
  CHECK((vlm::choose_dtype("bfloat16", cpu, at::kFloat, 128) == at::kBFloat16));
  CHECK((vlm::choose_dtype("float32", cpu, at::kBFloat16, 4096) == at::kFloat));
}
