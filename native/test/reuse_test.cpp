// Doing less work: every part against the plain path, and that it really does less.
#include <ATen/ATen.h>

#include <numeric>

#include "doctest/doctest.h"
#include "native/test/counter_weights.h"
#include "native/test/expect_error.h"
#include "native/test/temporary_folder.h"
#include "native/vlm/embedder.h"
#include "native/vlm/prefix.h"
#include "native/vlm/tensor_cache.h"

using namespace boq;

namespace {

constexpr int32_t kImageToken = 505;

std::vector<int32_t> count_up(int32_t first, int32_t count) {
  std::vector<int32_t> ids(static_cast<size_t>(count));
  std::iota(ids.begin(), ids.end(), first);
  return ids;
}

std::vector<int32_t> join(std::initializer_list<std::vector<int32_t>> parts) {
  std::vector<int32_t> all;
  for (const auto& part : parts) all.insert(all.end(), part.begin(), part.end());
  return all;
}

/// The token in every row of a plan, and that every sequence's rows spell its ids.
void check_plan(const vlm::SharingPlan& plan, const std::vector<std::vector<int32_t>>& sequences) {
  std::vector<int32_t> rows;
  for (const auto& match : plan.stored) {
    rows.insert(rows.end(), match.prefix->ids.begin(), match.prefix->ids.begin() + match.tokens);
  }
  REQUIRE(static_cast<int64_t>(rows.size()) == plan.stored_rows);
  for (const auto& run : plan.runs) {
    int64_t before = 0;
    for (const auto& range : run.before) before += range.size();
    CHECK(before == run.begin);
    const auto& ids = sequences[run.sequence];
    rows.insert(rows.end(), ids.begin() + run.begin, ids.begin() + run.end);
  }
  for (size_t s = 0; s < sequences.size(); ++s) {
    INFO("sequence ", s);
    std::vector<int32_t> spelt;
    for (const auto& range : plan.rows[s]) {
      spelt.insert(spelt.end(), rows.begin() + range.begin, rows.begin() + range.end);
    }
    CHECK(spelt == sequences[s]);
  }
}

vlm::SharingPlan plan_texts(const std::vector<std::vector<int32_t>>& sequences, vlm::PrefixStore* store) {
  std::vector<vlm::SharedText> texts;
  for (const auto& ids : sequences) {
    const auto image = std::find(ids.begin(), ids.end(), kImageToken);
    texts.push_back({&ids, image - ids.begin()});
  }
  return vlm::plan_sharing(texts, store);
}

int64_t computed(const vlm::SharingPlan& plan) {
  int64_t total = 0;
  for (const auto& run : plan.runs) total += run.end - run.begin;
  return total;
}

vlm::StoredPrefix stored(std::vector<int32_t> ids) {
  const auto tokens = static_cast<int64_t>(ids.size());
  return {std::move(ids), {at::zeros({tokens, 2, 4})}, at::zeros({tokens, 8})};
}

struct Model {
  explicit Model(const std::string& name) {
    test::write_checkpoint(read_json_file(test::parity_fixtures() / name / "model.json"), folder.path());
  }
  std::shared_ptr<vlm::Embedder> load(const std::string& dtype, const std::string& pooling,
                                      const vlm::ReuseOptions& reuse) const {
    vlm::EmbedderOptions options;
    options.path = folder.path();
    options.device = "cpu";
    options.dtype = dtype;
    options.pooling = pooling;
    options.reuse = reuse;
    return vlm::Embedder::load(options, CancelFlag());
  }
  test::TemporaryFolder folder;
};

constexpr vlm::ReuseOptions kPlain{false, false, false, 0};

/// A page with empty space and one changing part.
vlm::RgbImage page(int change) {
  vlm::RgbImage image{std::vector<uint8_t>(static_cast<size_t>(460 * 340 * 3), 240), 460, 340};
  const auto paint = [&](int64_t left, int64_t top, uint64_t seed) {
    const auto part = test::counter_image(90, 60, seed);
    for (int64_t y = 0; y < 60; ++y) {
      std::copy_n(&part.data[static_cast<size_t>(y * 270)], 270,
                  &image.data[static_cast<size_t>(((top + y) * 460 + left) * 3)]);
    }
  };
  paint(20, 10, 1);
  paint(300, 200, 2);
  paint(150, 250, static_cast<uint64_t>(10 + change));
  return image;
}

/// A growing history with the page as it looks then; `steps[i]` is the state of the page.
std::vector<std::vector<vlm::EmbedItem>> episode(const std::vector<int>& steps) {
  std::vector<std::vector<vlm::EmbedItem>> calls;
  auto history = count_up(1, 20);
  for (size_t i = 0; i < steps.size(); ++i) {
    const auto step = static_cast<int32_t>(i);
    calls.push_back({{join({history, {kImageToken, 7, 8}}), {page(steps[i])}},
                     {join({count_up(1, 12), count_up(100 + step, 9)}), {}},
                     {join({count_up(1, 12), count_up(100 + step, 4), count_up(300, 6)}), {}},
                     {count_up(1, 15), {}}});
    history = join({history, count_up(40 + 17 * step, 11)});
  }
  return calls;
}

void check_close(const at::Tensor& ours, const at::Tensor& plain, bool is_bf16) {
  const auto a = ours.to(at::kDouble), b = plain.to(at::kDouble);
  if (is_bf16) {
    CHECK((a.dot(b) / (a.norm() * b.norm())).item<double>() >= 0.9999);
  } else {
    CHECK(((a - b).norm() / b.norm()).item<double>() <= 1e-5);
  }
}

}  // namespace

TEST_CASE("prefix: without a store every sequence is computed whole") {
  const std::vector<std::vector<int32_t>> sequences{count_up(1, 30), count_up(1, 30)};
  const auto plan = plan_texts(sequences, nullptr);
  check_plan(plan, sequences);
  CHECK(computed(plan) == 60);
  CHECK(plan.wishes.empty());
}

TEST_CASE("prefix: common beginnings of a pack are computed once") {
  vlm::PrefixStore store(1 << 20);
  const auto head = count_up(1, 20);
  const std::vector<std::vector<int32_t>> sequences{
      join({head, count_up(100, 10), {7}}),
      join({head, count_up(100, 10), {8, 9}}),
      join({head, count_up(200, 3)}),
      join({head, {kImageToken, kImageToken}, count_up(100, 5)}),
      count_up(300, 12),
      head,
      count_up(400, 3),
      count_up(400, 3)};
  const auto plan = plan_texts(sequences, &store);
  check_plan(plan, sequences);
  CHECK(computed(plan) == 20 + 10 + 1 + 2 + 3 + 7 + 12 + 3 + 3);
  // The shared beginning, and the same again because an image follows it.
  REQUIRE(plan.wishes.size() == 2);
  CHECK(plan.wishes[0].tokens == 20);
  CHECK(plan.wishes[1].sequence == 3);
}

TEST_CASE("prefix: what the store has is not computed again") {
  vlm::PrefixStore store(1 << 20);
  store.keep(stored(count_up(1, 40)));
  store.keep(stored(count_up(600, 10)));
  const std::vector<std::vector<int32_t>> sequences{join({count_up(1, 25), {900, 901}}),
                                                    join({count_up(1, 25), {902}}), count_up(1, 40),
                                                    count_up(1, 7), join({count_up(600, 10), {kImageToken}})};
  const auto plan = plan_texts(sequences, &store);
  check_plan(plan, sequences);
  CHECK(computed(plan) == 2 + 1 + 0 + 7 + 1);
  CHECK(plan.stored_rows == 25 + 40 + 10);
}

TEST_CASE("prefix: a longer beginning takes the place of a shorter one, the oldest leave first") {
  const auto size = stored(count_up(1, 20)).bytes();
  vlm::PrefixStore store(2 * size);
  store.keep(stored(count_up(1, 10)));
  store.keep(stored(count_up(1, 20)));
  CHECK(store.bytes() == size);
  store.keep(stored(count_up(1, 15)));
  CHECK(store.bytes() == size);
  CHECK(store.find(count_up(1, 30), 30).tokens == 20);
  CHECK(store.find(count_up(1, 30), 12).tokens == 12);
  CHECK(store.find(count_up(1, 30), 7).prefix == nullptr);
  store.keep(stored(count_up(100, 20)));
  CHECK(store.find(count_up(1, 30), 30).tokens == 20);
  store.keep(stored(count_up(200, 20)));
  CHECK(store.bytes() == 2 * size);
  CHECK(store.find(count_up(100, 20), 20).prefix == nullptr);
  CHECK(store.find(count_up(200, 20), 20).tokens == 20);
  vlm::PrefixStore nothing(0);
  nothing.keep(stored(count_up(1, 10)));
  CHECK(nothing.bytes() == 0);
}

TEST_CASE("tensor cache: keys are compared whole, the oldest leave first") {
  const auto value = at::ones({4});
  vlm::TensorCache cache(3 * (4 * 4 + 1));
  for (const auto* key : {"a", "b", "c"}) cache.keep(key, value * key[0]);
  CHECK(cache.find("a")[0].item<float>() == 'a');
  cache.keep("d", value);
  CHECK_FALSE(cache.find("b").defined());
  CHECK(cache.find("a").defined());
  cache.keep("a", value);
  CHECK(cache.find("a")[0].item<float>() == 'a');
  CHECK(cache.bytes() == 3 * (4 * 4 + 1));
}

TEST_CASE("reuse: an episode agrees with the plain path, together and part by part") {
  const std::vector<int> steps{0, 0, 1, 2, 1, 2};
  const auto calls = episode(steps);
  const CancelFlag cancel;
  struct Part {
    const char* name;
    vlm::ReuseOptions options;
  };
  const std::vector<Part> parts{{"all", {}},
                                {"prefixes", {true, false, false, 64}},
                                {"images", {false, true, false, 64}},
                                {"windows", {false, false, true, 64}},
                                {"no memory", {true, true, true, 0}}};
  for (const auto* name : {"heads-128-80", "grouped", "deep"}) {
    const Model model(name);
    for (const auto* dtype : {"float32", "bfloat16"}) {
      const auto plain = model.load(dtype, "mean", kPlain);
      std::vector<at::Tensor> expected;
      for (const auto& items : calls) expected.push_back(plain->embed(items, cancel).vectors);
      for (const auto& part : parts) {
        INFO(name, " ", dtype, " ", part.name);
        const auto embedder = model.load(dtype, "mean", part.options);
        vlm::ReuseCounts total;
        for (size_t call = 0; call < calls.size(); ++call) {
          const auto result = embedder->embed(calls[call], cancel);
          for (int64_t i = 0; i < result.vectors.size(0); ++i) {
            INFO("call ", call, " item ", i);
            check_close(result.vectors[i], expected[call][i], std::string(dtype) == "bfloat16");
          }
          total += result.reuse;
        }
        const auto& options = part.options;
        const bool remembers = options.megabytes > 0;
        CHECK((total.computed_tokens < total.tokens) == options.prefixes);
        CHECK(total.images == static_cast<int64_t>(steps.size()));
        CHECK(total.computed_images == (options.images && remembers ? 3 : total.images));
        // "grouped" has full attention in its first block.
        const bool has_windows = options.windows && std::string(name) != "grouped";
        CHECK((total.computed_windows < total.windows) == has_windows);
      }
    }
  }
}

TEST_CASE("reuse: every pooling, another layer, and a repeated call") {
  const Model model("deep");
  const CancelFlag cancel;
  const auto calls = episode({0, 1});
  for (const auto* pooling : {"mean", "last", "text-mean"}) {
    for (const int64_t layer : {-1, 0, 2}) {
      INFO(pooling, " ", layer);
      vlm::EmbedderOptions options;
      options.path = model.folder.path();
      options.device = "cpu";
      options.pooling = pooling;
      options.hidden_layer = layer;
      const auto reusing = vlm::Embedder::load(options, cancel);
      options.reuse = kPlain;
      const auto plain = vlm::Embedder::load(options, cancel);
      for (const auto& items : {calls[0], calls[1], calls[0]}) {
        const auto ours = reusing->embed(items, cancel), reference = plain->embed(items, cancel);
        for (int64_t i = 0; i < ours.vectors.size(0); ++i)
          check_close(ours.vectors[i], reference.vectors[i], false);
      }
      // A text that is stored whole leaves nothing to compute.
      const auto again = reusing->embed({calls[0][3]}, cancel);
      CHECK(again.reuse.computed_tokens == 0);
      CHECK(again.reuse.tokens == 15);
      check_close(again.vectors[0], plain->embed({calls[0][3]}, cancel).vectors[0], false);
    }
  }
}

TEST_CASE("reuse: an image twice in one call is computed once") {
  const Model model("heads-128-80");
  const auto embedder = model.load("float32", "mean", {});
  const vlm::EmbedItem one{{1, kImageToken, 2}, {page(0)}}, two{{3, kImageToken, 4, 5}, {page(0)}};
  const auto result = embedder->embed({one, two}, CancelFlag());
  CHECK(result.reuse.images == 2);
  CHECK(result.reuse.computed_images == 1);
  const auto plain = model.load("float32", "mean", kPlain)->embed({one, two}, CancelFlag());
  for (int64_t i = 0; i < 2; ++i) check_close(result.vectors[i], plain.vectors[i], false);
}
