// What a run leaves on disk: the checkpoint to go on from, and the model to use. Every file appears whole or
// not at all.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "native/core/json.h"
#include "native/iql/iql.h"
#include "native/iql/transitions.h"

namespace boq::iql {

/// What must be the same for a run to go on from a checkpoint.
struct RunIdentity {
  std::string fingerprint;
  int64_t width = 0;
  int64_t training_transitions = 0;
  Json config;  ///< resolved, as config_to_json() gives it
};

/// <out>/checkpoint/state.safetensors.
std::filesystem::path checkpoint_path(const std::filesystem::path& out);

/// Everything that the next step depends on. The sampler and dropout are functions of seed and step, so the
/// step is their state. Throws BOQ_FILE_WRITE; the checkpoint before it is then still there.
void save_checkpoint(const std::filesystem::path& out, Iql& learner, const RunIdentity& identity);

/// Throws BOQ_CHECKPOINT_INVALID: damaged (a checksum covers every tensor), not ours, or of another run,
/// naming the first setting that differs.
void load_checkpoint(const std::filesystem::path& out, Iql& learner, const RunIdentity& identity);

/// model.safetensors: q.<head>.*, v.*, target.<head>.*, norm.<stream>.{mean,std}.
void save_model(const std::filesystem::path& out, Iql& learner, const Standardisers& standardisers);

/// Writes a text file: temporary, fsync, rename. Throws BOQ_FILE_WRITE.
void write_text(const std::filesystem::path& path, const std::string& text);

}  // namespace boq::iql
