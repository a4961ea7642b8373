#include "native/vlm/vision.h"

#include <ATen/ATen.h>

#include "native/core/staging.h"
#include "native/vlm/attention.h"

namespace boq::vlm {

namespace {

// Constants of the architecture: no config names them.
constexpr double kNormEps = 1e-6;
constexpr double kRopeTheta = 10000;

}  // namespace

VisionTower::VisionTower(const VisionConfig& config, const WeightScope& scope, const Compute& compute,
                         const CancelFlag& cancel)
    : config_(config), compute_(compute) {
  const auto width = config.hidden_size, patch = config.patch_size, slots = config.temporal_patch_size;
  auto kernel = scope.take("patch_embed.proj.weight", {width, 3, slots, patch, patch});
  if (compute.dtype == at::kFloat) {
    // Both temporal slots of a still image are equal, so their weights can be added once and for all. Only in
    // float32: in bfloat16 the sum would be rounded once more than in the reference.
    kernel = kernel.to(at::kFloat).sum(2);
  }
  patch_embed_ = Linear(compute.place(kernel.flatten(1)), {});
  const auto pairs = config.head_dim() / 4;
  frequencies_ = at::pow(kRopeTheta, at::arange(0, 2 * pairs, 2, at::kFloat) / static_cast<double>(2 * pairs))
                     .reciprocal();
  frequencies_ = frequencies_.to(compute.device);
  for (int64_t i = 0; i < config.depth; ++i) {
    cancel.check();
    const auto part = scope.prefix("blocks." + std::to_string(i));
    const auto inner = config.intermediate_size;
    Block block;
    block.norm1 = compute.place(part.take("norm1.weight", {width}));
    block.norm2 = compute.place(part.take("norm2.weight", {width}));
    block.qkv = Linear::take(part, "attn.qkv", width, 3 * width, true, compute);
    block.proj = Linear::take(part, "attn.proj", width, width, true, compute);
    block.gate_up =
        Linear::take_joined(part, {{"mlp.gate_proj", inner}, {"mlp.up_proj", inner}}, width, true, compute);
    block.down = Linear::take(part, "mlp.down_proj", inner, width, true, compute);
    blocks_.push_back(std::move(block));
  }
  const auto merged = width * config.patches_per_cell();
  merger_norm_ = compute.place(scope.take("merger.ln_q.weight", {width}));
  merger_first_ = Linear::take(scope, "merger.mlp.0", merged, merged, true, compute);
  merger_second_ = Linear::take(scope, "merger.mlp.2", merged, config.out_hidden_size, true, compute);
}

at::Tensor VisionTower::embed_patches(const at::Tensor& patches) const {
  auto rows = upload(patches, compute_.device).to(compute_.dtype);
  if (compute_.dtype != at::kFloat) {
    const auto slots = config_.temporal_patch_size, area = config_.patch_size * config_.patch_size;
    rows = rows.view({-1, 3, 1, area}).expand({-1, 3, slots, area}).reshape({rows.size(0), -1});
  }
  return patch_embed_(rows);
}

void VisionTower::run_blocks(at::Tensor& x, size_t begin, size_t end, const PatchRows& rows,
                             const Segments& images, const CancelFlag& cancel, const TapSink& sink) const {
  const auto heads = config_.num_heads, dim = config_.head_dim();
  // Angles of a patch: its row times every frequency, then its column times every frequency.
  const auto angles = (upload(rows.positions, compute_.device).unsqueeze(-1) * frequencies_).flatten(1);
  const Rotary rotary{angles.cos(), angles.sin()};
  const SegmentAttention windows(rows.windows, /*is_causal=*/false, compute_.device);
  const SegmentAttention whole(images, /*is_causal=*/false, compute_.device);
  for (auto i = begin; i < end; ++i) {
    cancel.check();
    const auto& block = blocks_[i];
    const auto qkv = block.qkv(rms_norm(x, block.norm1, kNormEps)).view({-1, 3 * heads, dim});
    rotate_heads(qkv.narrow(1, 0, 2 * heads), rotary);
    const auto q = qkv.narrow(1, 0, heads), k = qkv.narrow(1, heads, heads),
               v = qkv.narrow(1, 2 * heads, heads);
    const auto& attention = config_.is_full_attention(static_cast<int64_t>(i)) ? whole : windows;
    block.proj.add_to(x, attention(q, k, v));
    block.down.add_to(x, silu_mul(block.gate_up(rms_norm(x, block.norm2, kNormEps))));
    tap(sink, "vision.block." + std::to_string(i), x);
  }
}

VisionOutput VisionTower::forward(const VisionInput& input, bool with_states, const CancelFlag& cancel,
                                  const TapSink& sink) const {
  const auto leading = static_cast<size_t>(config_.leading_window_blocks());
  VisionOutput output;
  at::Tensor x;
  if (input.patches.size(0) > 0) {
    x = embed_patches(input.patches);
    tap(sink, "vision.patch_embed", x);
    run_blocks(x, 0, leading, input.computed, {}, cancel, sink);
    if (with_states) output.window_states = input.sources.defined() ? x : x.clone();
  }
  if (input.sources.defined()) {
    auto parts = input.known;
    if (x.defined()) parts.insert(parts.begin(), x);
    x = at::cat(parts).index_select(0, upload(input.sources, compute_.device));
  }
  run_blocks(x, leading, blocks_.size(), input.all, input.images, cancel, sink);
  const auto cells =
      rms_norm(x, merger_norm_, kNormEps).view({-1, config_.hidden_size * config_.patches_per_cell()});
  output.features = merger_second_(at::gelu(merger_first_(cells)));
  return output;
}

}  // namespace boq::vlm
