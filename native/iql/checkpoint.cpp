#include "native/iql/checkpoint.h"

#include <ATen/ATen.h>
#include <fcntl.h>
#include <unistd.h>

#include <cstring>
#include <system_error>

#include "native/core/error.h"
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

void make_folder(const fs::path& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  BOQ_CHECK(!error, ErrorCode::kFileWrite, "cannot make the folder ", folder.string(), ": ", error.message());
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

void save_model(const fs::path& out, Iql& learner, int64_t model, const Standardisers& standardisers) {
  make_folder(out);
  NamedTensors tensors;
  // The heads of one model, numbered from 0; V has one, without a number.
  const auto add = [&](const std::string& prefix, const Network& network, bool numbered) {
    const auto views = network.named_views(network.parameters());
    const size_t count = views.size() / static_cast<size_t>(learner.models()),
                 first = static_cast<size_t>(model) * count;
    const size_t layers = views.size() / static_cast<size_t>(network.heads());
    for (size_t i = 0; i < count; ++i) {
      const auto& [name, view] = views[first + i];
      const std::string layer = name.substr(name.find('.') + 1);
      tensors.emplace_back(prefix + (numbered ? std::to_string(i / layers) + "." : "") + layer, view);
    }
  };
  add("q.", learner.q(), true);
  add("v.", learner.v(), false);
  add("target.", learner.target(), true);
  const auto add_norm = [&](const std::string& stream, const Standardiser& standardiser) {
    if (standardiser.is_identity()) return;
    tensors.emplace_back("norm." + stream + ".mean", standardiser.mean);
    tensors.emplace_back("norm." + stream + ".std", standardiser.std);
  };
  add_norm("state", standardisers.state);
  add_norm("action", standardisers.action);
  add_norm("task", standardisers.task);
  write_safetensors(out / "model.safetensors", tensors, {{"format", "pt"}});
}

void write_text(const fs::path& path, const std::string& text) {
  make_folder(path.parent_path());
  const fs::path temporary = path.string() + ".part";
  const int file = ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  size_t written = 0;
  bool ok = file >= 0;
  while (ok && written < text.size()) {
    const ssize_t n = ::write(file, text.data() + written, text.size() - written);
    ok = n > 0 || (n < 0 && errno == EINTR);
    if (n > 0) written += static_cast<size_t>(n);
  }
  ok = ok && ::fsync(file) == 0;
  const int problem = errno;
  if (file >= 0) ::close(file);
  if (ok && ::rename(temporary.c_str(), path.c_str()) == 0) return;
  const std::string reason = std::strerror(ok ? errno : problem);
  ::unlink(temporary.c_str());
  fail(ErrorCode::kFileWrite, "cannot write ", path.string(), ": ", reason);
}

}  // namespace boq::iql
