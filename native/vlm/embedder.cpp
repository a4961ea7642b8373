#include "native/vlm/embedder.h"

#include <ATen/ATen.h>
#include <c10/core/InferenceMode.h>
#include <c10/util/Exception.h>

#include <new>

#include "native/core/device.h"
#include "native/vlm/model.h"
#include "native/vlm/pooling.h"

namespace boq::vlm {

namespace {

// Large enough that matrix products run at full speed, small enough that a pack's activations stay below a
// few hundred MB at the widths of the 7B model.
constexpr int64_t kTokensPerPack = 4096;

/// Runs `action`; what libtorch throws becomes a boq::Error.
template <class Action>
auto translated(const char* what, Action&& action) {
  try {
    return action();
  } catch (const Error&) {
    throw;
  } catch (const c10::OutOfMemoryError& error) {
    fail(ErrorCode::kOutOfMemory, what, ": ", error.what_without_backtrace());
  } catch (const std::bad_alloc&) {
    fail(ErrorCode::kOutOfMemory, what, ": the machine's memory is exhausted");
  } catch (const c10::Error& error) {
    const std::string message = error.what_without_backtrace();
    const bool is_memory = message.find("can't allocate memory") != std::string::npos;
    fail(is_memory ? ErrorCode::kOutOfMemory : ErrorCode::kTorch, what, ": ", message);
  }
}

class PackedEmbedder final : public Embedder {
 public:
  PackedEmbedder(Model model, const EmbedderOptions& options)
      : model_(std::move(model)),
        pooling_(parse_pooling(options.pooling)),
        use_l2_(options.l2),
        hidden_layer_(options.hidden_layer),
        reuse_(options.reuse) {
    const auto& config = model_.rules().model;
    auto& limits = model_.rules().preprocessor;
    BOQ_CHECK(options.min_pixels >= 0 && options.max_pixels >= 0, ErrorCode::kInvalidArgument,
              "minPixels and maxPixels must not be negative");
    if (options.min_pixels > 0) limits.min_pixels = options.min_pixels;
    if (options.max_pixels > 0) limits.max_pixels = options.max_pixels;
    BOQ_CHECK(limits.min_pixels <= limits.max_pixels, ErrorCode::kInvalidArgument, "minPixels ",
              limits.min_pixels, " is larger than maxPixels ", limits.max_pixels);
    BOQ_CHECK(hidden_layer_ >= -1 && hidden_layer_ <= config.text.num_hidden_layers,
              ErrorCode::kInvalidArgument, "hiddenLayer ", hidden_layer_,
              ": expected -1 (after the final norm) or 0 to ", config.text.num_hidden_layers);
    BOQ_CHECK(options.reuse.megabytes >= 0, ErrorCode::kInvalidArgument,
              "reuse.megabytes must not be negative");
    info_.width = config.text.hidden_size;
    info_.layers = config.text.num_hidden_layers;
    info_.device = model_.compute().device.str();
    info_.dtype = model_.compute().dtype == at::kFloat ? "float32" : "bfloat16";
    info_.max_tokens = config.text.max_position_embeddings;
    info_.image_token_id = config.image_token_id;
    info_.parameter_count = model_.parameter_count();
  }

  const EmbedderInfo& info() const override { return info_; }
  void set_reuse(const ReuseOptions& options) override { reuse_ = Reuse(options); }

  EmbedResult embed(const std::vector<EmbedItem>& items, const CancelFlag& cancel) override {
    return translated("embedding", [&] {
      const c10::InferenceMode inference;
      return embed_packs(items, cancel);
    });
  }

 private:
  EmbedResult embed_packs(const std::vector<EmbedItem>& items, const CancelFlag& cancel) {
    EmbedResult result;
    reuse_.counts = {};
    std::vector<Sequence> sequences;
    sequences.reserve(items.size());
    for (size_t i = 0; i < items.size(); ++i) {
      sequences.push_back(make_sequence(items[i], i, model_.rules()));
      check_poolable(sequences.back(), i, pooling_, info_.image_token_id);
      result.tokens.push_back(static_cast<int32_t>(sequences.back().tokens()));
    }
    result.vectors = at::empty({static_cast<int64_t>(items.size()), info_.width}, at::kFloat);
    for (const auto& plan : plan_packs(sequences, kTokensPerPack)) {
      cancel.check();
      std::vector<const Sequence*> pack;
      for (const auto i : plan) pack.push_back(&sequences[i]);
      auto inputs = make_pack(pack, model_.rules(), &reuse_);
      const auto rows = std::move(inputs.rows);
      const auto hidden = model_.forward(std::move(inputs), hidden_layer_, cancel, {}, &reuse_);
      const auto vectors = pool(hidden, pack, rows, pooling_, info_.image_token_id, use_l2_);
      for (size_t row = 0; row < plan.size(); ++row) {
        result.vectors[static_cast<int64_t>(plan[row])].copy_(vectors[static_cast<int64_t>(row)]);
      }
    }
    result.reuse = reuse_.counts;
    return result;
  }

  Model model_;
  Pooling pooling_;
  bool use_l2_;
  int64_t hidden_layer_;
  Reuse reuse_;
  EmbedderInfo info_;
};

}  // namespace

std::shared_ptr<Embedder> Embedder::load(const EmbedderOptions& options, const CancelFlag& cancel) {
  return translated("loading the model", [&]() -> std::shared_ptr<Embedder> {
    const c10::InferenceMode inference;
    parse_pooling(options.pooling);
    const auto device = parse_device(options.device);
    return std::make_shared<PackedEmbedder>(Model::load(options.path, device, options.dtype, cancel),
                                            options);
  });
}

}  // namespace boq::vlm
