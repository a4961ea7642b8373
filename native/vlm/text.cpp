#include "native/vlm/text.h"

#include <ATen/ATen.h>

#include "native/core/staging.h"
#include "native/vlm/attention.h"

namespace boq::vlm {

TextModel::TextModel(const TextConfig& config, const WeightScope& scope, const Compute& compute,
                     const CancelFlag& cancel)
    : config_(config), compute_(compute) {
  const auto width = config.hidden_size, inner = config.intermediate_size, dim = config.head_dim();
  const auto kv_width = config.num_key_value_heads * dim;
  embed_tokens_ = compute.place(scope.take("embed_tokens.weight", {config.vocab_size, width}));
  scope.release("embed_tokens.weight");
  frequencies_ =
      at::pow(config.rope_theta, at::arange(0, dim, 2, at::kFloat) / static_cast<double>(dim)).reciprocal();
  frequencies_ = frequencies_.to(compute.device);
  for (int64_t i = 0; i < config.num_hidden_layers; ++i) {
    cancel.check();
    const auto part = scope.prefix("layers." + std::to_string(i));
    Layer layer;
    layer.input_norm = compute.place(part.take("input_layernorm.weight", {width}));
    layer.post_attention_norm = compute.place(part.take("post_attention_layernorm.weight", {width}));
    layer.qkv = Linear::take_joined(
        part, {{"self_attn.q_proj", width}, {"self_attn.k_proj", kv_width}, {"self_attn.v_proj", kv_width}},
        width, true, compute);
    layer.output = Linear::take(part, "self_attn.o_proj", width, width, false, compute);
    layer.gate_up =
        Linear::take_joined(part, {{"mlp.gate_proj", inner}, {"mlp.up_proj", inner}}, width, false, compute);
    layer.down = Linear::take(part, "mlp.down_proj", inner, width, false, compute);
    layers_.push_back(std::move(layer));
  }
  norm_ = compute.place(scope.take("norm.weight", {width}));
}

Rotary TextModel::make_rotary(const at::Tensor& positions) const {
  // The first pairs follow t, the next h, the last w.
  std::vector<at::Tensor> parts;
  int64_t pair = 0;
  for (size_t axis = 0; axis < 3; ++axis) {
    const auto pairs = config_.mrope_section[axis];
    parts.push_back(positions[static_cast<int64_t>(axis)].unsqueeze(-1) *
                    frequencies_.narrow(0, pair, pairs));
    pair += pairs;
  }
  const auto angles = at::cat(parts, 1);
  return {angles.cos().to(compute_.dtype), angles.sin().to(compute_.dtype)};
}

namespace {

/// The rows of `ranges`, copied.
at::Tensor gather(const at::Tensor& rows, const std::vector<RowRange>& ranges) {
  std::vector<at::Tensor> parts;
  for (const auto& range : ranges) parts.push_back(rows.narrow(0, range.begin, range.size()));
  return at::cat(parts);
}

/// Stored rows, as `part` finds them, before `computed`.
template <class Part>
at::Tensor with_stored(const TextInput& input, const at::Tensor& computed, Part&& part) {
  if (input.stored.empty()) return computed;
  std::vector<at::Tensor> parts;
  for (const auto& match : input.stored) parts.push_back(part(*match.prefix).narrow(0, 0, match.tokens));
  parts.push_back(computed);
  return at::cat(parts);
}

}  // namespace

TextOutput TextModel::forward(const TextInput& input, int64_t hidden_layer, const CancelFlag& cancel,
                              const TapSink& sink) const {
  const auto depth = static_cast<int64_t>(layers_.size());
  const auto last = hidden_layer < 0 ? depth : hidden_layer;
  TextOutput output;
  for (const auto& ids : input.wished_ids) output.prefixes.push_back({ids, {}, {}});

  auto x = at::embedding(embed_tokens_, upload(input.ids, compute_.device));
  if (input.image_features.defined())
    x.index_copy_(0, upload(input.image_rows, compute_.device), input.image_features);
  tap(sink, "text.hidden.0", x);
  // Where everything is stored already, nothing is left to compute.
  if (x.size(0) > 0) x = run_layers(x, input, last, output.prefixes, cancel, sink);
  output.hidden = with_stored(input, x, [](const StoredPrefix& prefix) { return prefix.hidden; });
  for (size_t i = 0; i < output.prefixes.size(); ++i) {
    output.prefixes[i].hidden = gather(output.hidden, input.wishes[i]);
  }
  return output;
}

at::Tensor TextModel::run_layers(at::Tensor x, const TextInput& input, int64_t last,
                                 std::vector<StoredPrefix>& prefixes, const CancelFlag& cancel,
                                 const TapSink& sink) const {
  const auto heads = config_.num_attention_heads, kv_heads = config_.num_key_value_heads,
             dim = config_.head_dim();
  const auto depth = static_cast<int64_t>(layers_.size());
  const auto rotary = make_rotary(upload(input.positions, compute_.device));
  const SegmentAttention attention(input.runs, /*is_causal=*/true, compute_.device);
  for (int64_t i = 0; i < std::min(last, depth); ++i) {
    cancel.check();
    const auto& layer = layers_[static_cast<size_t>(i)];
    const auto qkv =
        layer.qkv(rms_norm(x, layer.input_norm, config_.rms_norm_eps)).view({-1, heads + 2 * kv_heads, dim});
    // One call rotates the heads of q and k, which lie side by side.
    rotate_heads(qkv.narrow(1, 0, heads + kv_heads), rotary);
    const auto keys_values =
        with_stored(input, qkv.narrow(1, heads, 2 * kv_heads),
                    [&](const StoredPrefix& prefix) { return prefix.layers[static_cast<size_t>(i)]; });
    for (size_t wish = 0; wish < prefixes.size(); ++wish) {
      prefixes[wish].layers.push_back(gather(keys_values, input.wishes[wish]));
    }
    const auto k = keys_values.narrow(1, 0, kv_heads), v = keys_values.narrow(1, kv_heads, kv_heads);
    layer.output.add_to(x, attention(qkv.narrow(1, 0, heads), k, v));
    layer.down.add_to(x,
                      silu_mul(layer.gate_up(rms_norm(x, layer.post_attention_norm, config_.rms_norm_eps))));
    if (i + 1 < depth) tap(sink, "text.hidden." + std::to_string(i + 1), x);
  }
  if (last < depth) return x;
  x = rms_norm(x, norm_, config_.rms_norm_eps);
  tap(sink, "text.hidden." + std::to_string(depth), x);
  return x;
}

}  // namespace boq::vlm
