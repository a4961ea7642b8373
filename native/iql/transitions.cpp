#include "native/iql/transitions.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>

#include "native/core/error.h"
#include "native/core/safetensors.h"

namespace boq::iql {
namespace {

namespace fs = std::filesystem;

template <class T>
void append(std::vector<T>& to, const SafetensorsFile& file, const char* name, int64_t expected) {
  BOQ_CHECK(file.contains(name), ErrorCode::kDataInvalid, file.path().string(), ": expected an array '", name,
            "'; embed the run again");
  const at::Tensor tensor = file.tensor(name).contiguous();
  BOQ_CHECK(tensor.scalar_type() == c10::CppTypeToScalarType<T>::value && tensor.dim() == 1 &&
                tensor.size(0) == expected,
            ErrorCode::kDataInvalid, file.path().string(), ": expected '", name, "' to hold ", expected,
            " values of type ", c10::CppTypeToScalarType<T>::value, ", got ", tensor.sizes(), " of type ",
            tensor.scalar_type(), "; embed the run again");
  const T* data = tensor.const_data_ptr<T>();
  to.insert(to.end(), data, data + expected);
}

// Adds `shift` to what was appended at `from` on, leaving -1 alone; checks the range.
template <class T>
void rebase(std::vector<T>& values, size_t from, int64_t shift, int64_t limit, bool may_be_missing,
            const std::string& what) {
  for (size_t i = from; i < values.size(); ++i) {
    const auto value = static_cast<int64_t>(values[i]);
    if (may_be_missing && value == -1) continue;
    BOQ_CHECK(value >= 0 && value < limit, ErrorCode::kDataInvalid, what, ": expected a number from 0 to ",
              limit - 1, " at position ", i - from, ", got ", value, "; embed the run again");
    values[i] = static_cast<T>(value + shift);
  }
}

// Episodes must lie one after the other, each with its steps in order: returns and next actions rely on it.
void check_episodes(const Transitions& data, size_t first_episode, size_t first, const std::string& where) {
  auto at = static_cast<int64_t>(first);
  for (size_t e = first_episode; e < data.episode_first.size(); ++e) {
    const int64_t steps = data.episode_steps[e];
    BOQ_CHECK(data.episode_first[e] == at && steps >= 1 && at + steps <= data.size(), ErrorCode::kDataInvalid,
              where, ": expected episode ", e - first_episode, " to begin at transition ",
              at - static_cast<int64_t>(first), " and to fit; embed the run again");
    for (int64_t i = 0; i < steps; ++i, ++at) {
      BOQ_CHECK(data.episode[at] == static_cast<int32_t>(e) && data.step[at] == i &&
                    (data.done[at] != 0) == (i + 1 == steps) && std::isfinite(data.reward[at]),
                ErrorCode::kDataInvalid, where, ": transition ", at - static_cast<int64_t>(first),
                " disagrees with its episode (number, step, done or reward); embed the run again");
    }
  }
  BOQ_CHECK(at == data.size(), ErrorCode::kDataInvalid, where, ": some transitions belong to no episode");
}

// The executed action must be one of the candidates of its step.
void check_chosen(const Transitions& data, size_t first, size_t first_offset, const std::string& where) {
  for (size_t i = first_offset; i + 1 < data.candidate_offset.size(); ++i) {
    const int64_t count = data.candidate_offset[i + 1] - data.candidate_offset[i];
    const int32_t chosen = data.chosen[first + i - first_offset];
    BOQ_CHECK(chosen >= 0 && chosen < count, ErrorCode::kDataInvalid, where, ": transition ",
              i - first_offset, " chose candidate ", chosen, " of ", count, "; embed the run again");
  }
}

// Tasks of one name are one task, whichever run they come from: numbers within the folder become numbers
// within data.task_names.
void join_tasks(Transitions& data, const JsonView& names, size_t first_episode, const std::string& where) {
  std::vector<int32_t> numbers;
  for (size_t i = 0; i < names.size(); ++i) {
    const std::string name = names.at(i).as_string();
    const auto known = std::find(data.task_names.begin(), data.task_names.end(), name);
    numbers.push_back(static_cast<int32_t>(known - data.task_names.begin()));
    if (known == data.task_names.end()) data.task_names.push_back(name);
  }
  for (size_t e = first_episode; e < data.episode_task.size(); ++e) {
    const int32_t task = data.episode_task[e];
    BOQ_CHECK(task >= 0 && static_cast<size_t>(task) < numbers.size(), ErrorCode::kDataInvalid, where,
              ": episode_task names task ", task, " of ", numbers.size());
    data.episode_task[e] = numbers[static_cast<size_t>(task)];
  }
}

void add_folder(Transitions& data, const fs::path& folder) {
  const std::string where = folder.string();
  const fs::path manifest_path = folder / "manifest.json";
  BOQ_CHECK(fs::exists(manifest_path), ErrorCode::kFileNotFound, where,
            ": expected a finished embedding folder (manifest.json is missing); run embed on it first");
  const Json json = read_json_file(manifest_path, ErrorCode::kDataInvalid);
  const JsonView manifest(json, manifest_path.string(), ErrorCode::kDataInvalid);
  const int64_t version = manifest.at("version").as_int();
  if (version != 1) manifest.reject("expected version 1, got ", version, "; embed the run again");

  const std::string fingerprint = manifest.at("fingerprint").as_string();
  const int64_t width = manifest.at("width").as_int(1, 1 << 20);
  if (data.sources.empty()) {
    data.fingerprint = fingerprint;
    data.width = width;
    data.profile = json.value("profile", Json::object());
  }
  BOQ_CHECK(data.fingerprint == fingerprint, ErrorCode::kFingerprintMismatch, where,
            " was embedded by another embedder (fingerprint ", fingerprint, ") than ",
            data.sources.front().path, " (", data.fingerprint, "); embed both runs with the same one");
  BOQ_CHECK(data.width == width, ErrorCode::kShapeMismatch, where, ": expected vectors of width ", data.width,
            ", got ", width);

  const int64_t transitions = manifest.at("transitions").as_int(0),
                candidates = manifest.at("candidates").as_int(0),
                episodes = manifest.at("episodes").as_int(0);
  const auto first = data.state.size(), first_candidate = data.candidate_action.size(),
             first_offset = data.candidate_offset.size(), first_episode = data.episode_success.size();
  const int64_t states = data.states.size(), actions = data.actions.size(), tasks = data.tasks.size();
  const JsonView streams = manifest.at("streams");
  const int64_t rows_per_shard = manifest.at("rowsPerShard").as_int(1);
  data.states.add(folder, streams.at("state"), rows_per_shard, width);
  data.actions.add(folder, streams.at("action"), rows_per_shard, width);
  data.tasks.add(folder, streams.at("task"), rows_per_shard, width);

  const auto index = SafetensorsFile::open(folder / manifest.at("index").as_string());
  append(data.state, index, "state", transitions);
  append(data.action, index, "action", transitions);
  append(data.task, index, "task", transitions);
  append(data.next_state, index, "next_state", transitions);
  append(data.reward, index, "reward", transitions);
  append(data.done, index, "done", transitions);
  append(data.timeout, index, "timeout", transitions);
  append(data.episode, index, "episode", transitions);
  append(data.step, index, "step", transitions);
  append(data.chosen, index, "chosen", transitions);
  append(data.candidate_offset, index, "candidate_offset", transitions + 1);
  append(data.candidate_action, index, "candidate_action", candidates);
  append(data.episode_task, index, "episode_task", episodes);
  append(data.episode_success, index, "episode_success", episodes);
  append(data.episode_first, index, "episode_first", episodes);
  append(data.episode_steps, index, "episode_steps", episodes);
  append(data.episode_split, index, "episode_split", episodes);

  const std::string file = index.path().string();
  rebase(data.state, first, states, data.states.size() - states, false, file + ": state");
  rebase(data.action, first, actions, data.actions.size() - actions, false, file + ": action");
  rebase(data.task, first, tasks, data.tasks.size() - tasks, false, file + ": task");
  rebase(data.next_state, first, states, data.states.size() - states, true, file + ": next_state");
  rebase(data.episode, first, static_cast<int64_t>(first_episode), episodes, false, file + ": episode");
  rebase(data.episode_first, first_episode, static_cast<int64_t>(first), transitions, false,
         file + ": episode_first");
  rebase(data.candidate_action, first_candidate, actions, data.actions.size() - actions, false,
         file + ": candidate_action");
  rebase(data.candidate_offset, first_offset, static_cast<int64_t>(first_candidate), candidates + 1, false,
         file + ": candidate_offset");
  check_episodes(data, first_episode, first, file);
  check_chosen(data, first, first_offset, file);
  if (!data.candidate_offset.empty())
    data.candidate_offset.pop_back();  // the next folder, or load(), closes the list

  join_tasks(data, manifest.at("taskNames"), first_episode, file);
  int64_t successes = 0;
  for (size_t e = first_episode; e < data.episode_success.size(); ++e)
    successes += data.episode_success[e] != 0;
  data.sources.push_back(
      {where, transitions, episodes,
       episodes == 0 ? 0 : static_cast<double>(successes) / static_cast<double>(episodes)});
}

}  // namespace

Transitions Transitions::load(const std::vector<fs::path>& folders) {
  BOQ_CHECK(!folders.empty(), ErrorCode::kDataEmpty, "training needs at least one embedding folder");
  Transitions data;
  for (const auto& folder : folders) add_folder(data, folder);
  data.candidate_offset.push_back(static_cast<int64_t>(data.candidate_action.size()));
  BOQ_CHECK(data.size() > 0, ErrorCode::kDataEmpty, "expected transitions to train on, but ",
            data.sources.front().path, data.sources.size() > 1 ? " and the other folders hold" : " holds",
            " none; collect some episodes first");
  return data;
}

}  // namespace boq::iql
