// The whole network: weights of a model folder, and the forward pass over one pack.
#pragma once

#include <filesystem>
#include <memory>

#include "native/vlm/sequence.h"

namespace boq::vlm {

class Model {
 public:
  /// Reads config.json, preprocessor_config.json and the weights. `dtype`: auto | float32 | bfloat16.
  static Model load(const std::filesystem::path& folder, const at::Device& device, const std::string& dtype,
                    const CancelFlag& cancel);

  const InputRules& rules() const { return rules_; }
  InputRules& rules() { return rules_; }
  const Compute& compute() const { return compute_; }
  int64_t parameter_count() const { return parameter_count_; }

  /// Hidden state `hidden_layer` (see EmbedderOptions) of every row of the pack: [rows, hidden_size]. Keeps
  /// in `reuse`, which may be null, what later packs can use; it must be the one the pack was made with.
  at::Tensor forward(Pack pack, int64_t hidden_layer, const CancelFlag& cancel, const TapSink& sink = {},
                     Reuse* reuse = nullptr) const;

 private:
  Model(InputRules rules, const Compute& compute, const WeightScope& scope, const CancelFlag& cancel);

  InputRules rules_;
  Compute compute_;
  VisionTower vision_;
  TextModel text_;
  int64_t parameter_count_ = 0;
};

/// The type that `choice` (auto | float32 | bfloat16) stands for. Auto on the CPU: bfloat16 where the
/// processor has instructions for it, the file holds bfloat16 and the model is wide enough to gain from it;
/// float32 otherwise.
at::ScalarType choose_dtype(const std::string& choice, const at::Device& device, at::ScalarType stored,
                            int64_t hidden_size);

}  // namespace boq::vlm
