// What the agent uses of a trained model: values of candidate actions. Online networks, no dropout.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

namespace boq::iql {

/// `states[i]` goes with `tasks[i]`; candidate j belongs to state `owner[j]`. E is the width of the
/// embeddings.
struct ScoreBatch {
  at::Tensor states;   ///< float32 [S, E]
  at::Tensor tasks;    ///< float32 [S, E]
  at::Tensor actions;  ///< float32 [C, E]
  at::Tensor owner;    ///< int32 or int64 [C], each in [0, S)
};

/// float32 on the CPU.
struct Scores {
  at::Tensor q;       ///< [C], mean over heads
  at::Tensor spread;  ///< [C], standard deviation over heads; 0 with one head
  at::Tensor v;       ///< [S]
};

class Scorer {
 public:
  /// Loads a model folder. Throws BOQ_FILE_NOT_FOUND, BOQ_FILE_CORRUPT, BOQ_CONFIG_INVALID,
  /// BOQ_WEIGHTS_MISSING, BOQ_WEIGHTS_UNEXPECTED, BOQ_SHAPE_MISMATCH.
  static std::shared_ptr<Scorer> load(const std::filesystem::path& path, const std::string& device);
  ~Scorer();

  /// Equal rows get equal values (within 1e-6) whatever else is in the batch. Throws BOQ_SHAPE_MISMATCH,
  /// BOQ_INVALID_ARGUMENT, BOQ_NOT_FINITE. Safe to call from several threads.
  Scores score(const ScoreBatch& batch) const;

  int64_t width() const;
  int64_t heads() const;
  const std::string& fingerprint() const;

 private:
  struct Model;
  explicit Scorer(std::unique_ptr<const Model> model);

  std::unique_ptr<const Model> model_;
};

}  // namespace boq::iql
