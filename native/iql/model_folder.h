// A model folder as training writes it: model.safetensors, offline.json, config.json, metrics.jsonl; and
// checkpoint/ until it is complete. docs/data-formats.md describes the files.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "native/core/json.h"
#include "native/iql/iql.h"
#include "native/iql/split.h"
#include "native/iql/standardiser.h"
#include "native/iql/trainer.h"
#include "native/iql/training_run.h"

namespace boq::iql {

/// Removes what an earlier run left there: a folder must never show the model of one run with the checkpoint
/// of another.
void clear_model_folder(const std::filesystem::path& out);

/// model.safetensors: q.<head>.*, v.*, target.<head>.*, norm.<stream>.{mean,std}, of the `model`-th model of
/// the learner. Throws BOQ_FILE_WRITE.
void save_model(const std::filesystem::path& out, Iql& learner, int64_t model,
                const Standardisers& standardisers);

/// Copies the weights, the target's too, of a model folder into the `model`-th model of the learner; inputs
/// stay standardised by the new data, whose `fingerprint` it must have. Throws BOQ_FILE_NOT_FOUND,
/// BOQ_FINGERPRINT_MISMATCH where the model knows other embeddings, BOQ_SHAPE_MISMATCH where its networks are
/// others.
void load_model(const std::filesystem::path& from, Iql& learner, int64_t model,
                const std::string& fingerprint);

/// config.json, to be written last: its presence says that the model is complete. `calibration`: see
/// calibration_map(). Throws BOQ_FILE_WRITE.
void save_model_config(const ModelPlan& plan, const TrainingData& data, const Split& split,
                       const TrainSummary& summary, const Json& calibration);

/// The summary of a model that an earlier call finished with the same settings, on data of the same embedder;
/// none where its folder holds no such model, or still a checkpoint. Throws BOQ_CONFIG_INVALID where
/// config.json cannot be read.
std::optional<TrainSummary> finished_model(const ModelPlan& plan);

}  // namespace boq::iql
