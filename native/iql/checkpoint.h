// The checkpoint that a stopped or killed run goes on from. It appears whole or not at all.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "native/core/json.h"
#include "native/iql/iql.h"

namespace boq::iql {

/// What must be the same for a run to go on from a checkpoint.
struct RunIdentity {
  std::string fingerprint;
  int64_t width = 0;
  int64_t training_transitions = 0;
  std::string outcomes;  ///< a digest: labels and shuffled rewards change it
  Json config;           ///< resolved, as config_to_json() gives it
};

/// <out>/checkpoint/state.safetensors.
std::filesystem::path checkpoint_path(const std::filesystem::path& out);

/// Everything that the next step of one model depends on. The sampler and dropout are functions of seed and
/// step, so the step is their state. Throws BOQ_FILE_WRITE; the checkpoint before it is then still there.
void save_checkpoint(const std::filesystem::path& out, Iql& learner, int64_t model,
                     const RunIdentity& identity);

/// Returns the step, for set_steps_done(). Throws BOQ_CHECKPOINT_INVALID: damaged (a checksum covers every
/// tensor), not ours, or of another run, naming the first setting that differs.
int64_t load_checkpoint(const std::filesystem::path& out, Iql& learner, int64_t model,
                        const RunIdentity& identity);

/// Step of the checkpoint in `out`; 0 where there is none, or none that can be read.
int64_t checkpoint_step(const std::filesystem::path& out);

}  // namespace boq::iql
