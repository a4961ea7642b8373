#include "native/iql/checkpoint.h"

#include <ATen/ATen.h>

#include <cstring>

#include "native/core/error.h"
#include "native/core/files.h"
#include "native/core/safetensors.h"
#include "native/iql/random.h"

namespace boq::iql {
namespace {

namespace fs = std::filesystem;

constexpr const char* kKind = "boq-iql-checkpoint";
constexpr const char* kVersion = "1";

// Four lanes, so that the check runs at the speed of memory rather than of one multiply after the other.
uint64_t checksum_of(const at::Tensor& tensor) {
  const at::Tensor plain = tensor.cpu().contiguous();
  const auto* bytes = static_cast<const char*>(plain.const_data_ptr());
  const auto size = static_cast<size_t>(plain.nbytes());
  uint64_t lanes[4] = {1, 2, 3, 4};
  size_t i = 0;
  for (; i + 32 <= size; i += 32) {
    uint64_t words[4];
    std::memcpy(words, bytes + i, sizeof words);
    for (int lane = 0; lane < 4; ++lane) {
      lanes[lane] = (lanes[lane] ^ words[lane]) * 0x9e3779b97f4a7c15ull;
      lanes[lane] ^= lanes[lane] >> 32;
    }
  }
  uint64_t sum = size;
  for (; i < size; ++i) sum = mix_bits(sum ^ static_cast<unsigned char>(bytes[i]));
  for (const uint64_t lane : lanes) sum = mix_bits(sum ^ lane);
  return sum;
}

// Views of what belongs to one model.
NamedTensors state_of(Iql& learner, int64_t model) {
  const int64_t heads = learner.config().heads;
  const auto q = [&](const at::Tensor& all) { return all.narrow(0, model * heads, heads); };
  const auto v = [&](const at::Tensor& all) { return all.narrow(0, model, 1); };
  return {{"q.parameters", q(learner.q().parameters())},
          {"q.first", q(learner.q_adam().first())},
          {"q.second", q(learner.q_adam().second())},
          {"v.parameters", v(learner.v().parameters())},
          {"v.first", v(learner.v_adam().first())},
          {"v.second", v(learner.v_adam().second())},
          {"target.parameters", q(learner.target().parameters())}};
}

uint64_t checksum_of(const NamedTensors& tensors) {
  uint64_t sum = 0;
  for (const auto& [name, tensor] : tensors) sum = mix_bits(sum ^ checksum_of(tensor));
  return sum;
}

[[noreturn]] void reject(const fs::path& path, const std::string& why) {
  fail(ErrorCode::kCheckpointInvalid, path.string(), ": ", why,
       "; train without resume to start anew, or restore the file");
}

}  // namespace

fs::path checkpoint_path(const fs::path& out) { return out / "checkpoint" / "state.safetensors"; }

void save_checkpoint(const fs::path& out, Iql& learner, int64_t model, const RunIdentity& identity) {
  const fs::path path = checkpoint_path(out);
  make_folder(path.parent_path());
  const NamedTensors state = state_of(learner, model);
  write_safetensors(path, state,
                    {{"kind", kKind},
                     {"version", kVersion},
                     {"step", std::to_string(learner.steps_done())},
                     {"checksum", std::to_string(checksum_of(state))},
                     {"fingerprint", identity.fingerprint},
                     {"width", std::to_string(identity.width)},
                     {"transitions", std::to_string(identity.training_transitions)},
                     {"outcomes", identity.outcomes},
                     {"config", identity.config.dump()}});
}

int64_t load_checkpoint(const fs::path& out, Iql& learner, int64_t model, const RunIdentity& identity) {
  const fs::path path = checkpoint_path(out);
  const SafetensorsFile file = [&] {
    try {
      return SafetensorsFile::open(path);
    } catch (const Error& error) {
      reject(path, std::string("expected a checkpoint, but ") + error.what());
    }
  }();
  const auto& metadata = file.metadata();
  const auto value = [&](const char* key) {
    const auto found = metadata.find(key);
    if (found == metadata.end())
      reject(path, std::string("expected a checkpoint of IQL training, found no '") + key + "'");
    return found->second;
  };
  if (value("kind") != kKind || value("version") != kVersion)
    reject(path,
           "expected a checkpoint of IQL training, version 1, got " + value("kind") + " " + value("version"));
  const auto require_same = [&](const char* what, const std::string& here) {
    if (value(what) != here)
      reject(path, std::string("this run has ") + what + " " + here + ", the checkpoint " + value(what));
  };
  require_same("fingerprint", identity.fingerprint);
  require_same("width", std::to_string(identity.width));
  require_same("transitions", std::to_string(identity.training_transitions));
  if (value("outcomes") != identity.outcomes)
    reject(path, "its episodes had other outcomes; train with the same labels as before");
  const Json config = parse_json(value("config"), path.string() + ": config", ErrorCode::kCheckpointInvalid);
  for (const auto& [key, mine] : identity.config.items()) {
    // Where and how often a run is saved or measured does not change its course.
    if (key == "checkpointEvery" || key == "evaluateEvery" || key == "keepCheckpoint" || key == "regressor")
      continue;
    const Json theirs = config.value(key, Json());
    if (theirs != mine)
      reject(path, "this run has " + key + " " + mine.dump() + ", the checkpoint " + theirs.dump());
  }

  NamedTensors loaded;
  const NamedTensors state = state_of(learner, model);
  for (const auto& [name, tensor] : state) {
    if (!file.contains(name) || file.info(name).shape != tensor.sizes().vec() ||
        file.info(name).dtype != tensor.scalar_type())
      reject(path, "expected a tensor " + name + " of the shape that the settings imply");
    loaded.emplace_back(name, file.tensor(name));
  }
  if (std::to_string(checksum_of(loaded)) != value("checksum"))
    reject(path, "its contents are damaged (checksum)");
  for (size_t i = 0; i < state.size(); ++i) state[i].second.copy_(loaded[i].second);
  learner.q().parameters_changed();
  learner.v().parameters_changed();
  learner.target_changed();
  return std::stoll(value("step"));
}

int64_t checkpoint_step(const fs::path& out) {
  if (!fs::exists(checkpoint_path(out))) return 0;
  try {
    const auto metadata = SafetensorsFile::open(checkpoint_path(out)).metadata();
    const auto step = metadata.find("step");
    return step == metadata.end() ? 0 : std::stoll(step->second);
  } catch (const std::exception&) {
    return 0;  // load_checkpoint() says what is wrong with it
  }
}

}  // namespace boq::iql
