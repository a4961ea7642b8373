#include "native/iql/transitions.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "native/core/error.h"
#include "native/core/safetensors.h"
#include "native/iql/kernels.h"
#include "native/iql/random.h"

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
  for (size_t i = first_offset; i + 1 < data.candidate_offset.size(); ++i) {
    const int64_t count = data.candidate_offset[i + 1] - data.candidate_offset[i];
    const int32_t chosen = data.chosen[first + i - first_offset];
    BOQ_CHECK(chosen >= 0 && chosen < count, ErrorCode::kDataInvalid, file, ": transition ", i - first_offset,
              " chose candidate ", chosen, " of ", count, "; embed the run again");
  }
  if (!data.candidate_offset.empty())
    data.candidate_offset.pop_back();  // the next folder, or load(), closes the list

  // Tasks of one name are one task, whichever run they come from.
  const JsonView names = manifest.at("taskNames");
  std::vector<int32_t> numbers;
  for (size_t i = 0; i < names.size(); ++i) {
    const std::string name = names.at(i).as_string();
    const auto known = std::find(data.task_names.begin(), data.task_names.end(), name);
    numbers.push_back(static_cast<int32_t>(known - data.task_names.begin()));
    if (known == data.task_names.end()) data.task_names.push_back(name);
  }
  int64_t successes = 0;
  for (size_t e = first_episode; e < data.episode_task.size(); ++e) {
    const int32_t task = data.episode_task[e];
    BOQ_CHECK(task >= 0 && static_cast<size_t>(task) < numbers.size(), ErrorCode::kDataInvalid, file,
              ": episode_task names task ", task, " of ", numbers.size());
    data.episode_task[e] = numbers[static_cast<size_t>(task)];
    successes += data.episode_success[e] != 0;
  }
  data.sources.push_back(
      {where, transitions, episodes,
       episodes == 0 ? 0 : static_cast<double>(successes) / static_cast<double>(episodes)});
}

}  // namespace

at::Tensor Standardiser::apply(const at::Tensor& rows) const {
  if (is_identity()) return rows;
  const at::Tensor scaled = (rows - mean.to(rows.device())) / std.to(rows.device());
  return clip > 0 ? scaled.clamp(-clip, clip) : scaled;
}

void RowStore::add(const fs::path& folder, const JsonView& stream, int64_t rows_per_shard, int64_t width) {
  width_ = width;
  const int64_t rows = stream.at("rows").as_int(0);
  const JsonView names = stream.at("shards");
  int64_t seen = 0;
  for (size_t i = 0; i < names.size(); ++i) {
    const fs::path path = folder / names.at(i).as_string();
    const auto file = SafetensorsFile::open(path);
    const at::Tensor tensor = file.tensor("rows");
    const auto dtype = tensor.scalar_type();
    BOQ_CHECK(dtype == at::kFloat || dtype == at::kBFloat16 || dtype == at::kHalf,
              ErrorCode::kDtypeUnsupported, path.string(),
              ": expected float32, bfloat16 or float16 vectors, got ", dtype);
    BOQ_CHECK(tensor.dim() == 2 && tensor.size(1) == width, ErrorCode::kShapeMismatch, path.string(),
              ": expected rows of width ", width, ", got a tensor of shape ", tensor.sizes());
    BOQ_CHECK(i + 1 == names.size() || tensor.size(0) == rows_per_shard, ErrorCode::kDataInvalid,
              path.string(), ": expected ", rows_per_shard, " rows, got ", tensor.size(0));
    shards_.push_back({size_ + seen, tensor});
    seen += tensor.size(0);
  }
  if (seen != rows)
    stream.reject("expected ", rows, " rows in the shards, got ", seen, "; embed the run again");
  size_ += rows;
}

const void* RowStore::row(int64_t id, at::ScalarType* dtype) const {
  const auto after = std::upper_bound(shards_.begin(), shards_.end(), id,
                                      [](int64_t value, const Shard& shard) { return value < shard.first; });
  const Shard& shard = *(after - 1);
  *dtype = shard.rows.scalar_type();
  return static_cast<const char*>(shard.rows.const_data_ptr()) +
         (id - shard.first) * width_ * static_cast<int64_t>(shard.rows.element_size());
}

at::Tensor RowStore::gather(std::span<const int64_t> ids, const Standardiser& standardiser,
                            at::ScalarType dtype) const {
  const auto count = static_cast<int64_t>(ids.size());
  at::Tensor out = at::empty({count, width_}, dtype);
  auto* to = static_cast<char*>(out.mutable_data_ptr());
  const int64_t stride = width_ * static_cast<int64_t>(out.element_size());
  RowScaling scaling;
  if (!standardiser.is_identity())
    scaling = {standardiser.mean.const_data_ptr<float>(), standardiser.std.const_data_ptr<float>(),
               static_cast<float>(standardiser.clip)};
  at::parallel_for(0, count, std::max<int64_t>(1, (1 << 17) / width_), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      if (ids[static_cast<size_t>(i)] < 0) {
        std::fill(to + i * stride, to + (i + 1) * stride, 0);
        continue;
      }
      at::ScalarType from;
      const void* source = row(ids[static_cast<size_t>(i)], &from);
      copy_row(source, from, to + i * stride, dtype, width_, scaling);
    }
  });
  return out;
}

Standardiser RowStore::statistics(const std::vector<int64_t>& weight, double clip) const {
  const auto width = static_cast<size_t>(width_);
  std::vector<double> origin(width), sum(width), squares(width);
  double total = 0;
  for (int64_t id = 0; id < size_; ++id) {
    const int64_t times = weight[static_cast<size_t>(id)];
    if (times == 0) continue;
    at::ScalarType dtype;
    const void* source = row(id, &dtype);
    if (total == 0) {  // moments about a typical row lose no digits
      std::vector<float> values(width);
      copy_row(source, dtype, values.data(), at::kFloat, width_, {});
      std::copy(values.begin(), values.end(), origin.begin());
    }
    add_moments(source, dtype, width_, static_cast<double>(times), origin.data(), sum.data(), squares.data());
    total += static_cast<double>(times);
  }
  Standardiser result{at::zeros({width_}, at::kFloat), at::ones({width_}, at::kFloat), clip};
  for (size_t j = 0; j < width && total > 0; ++j) {
    const double shift = sum[j] / total;
    const double deviation = std::sqrt(std::max(0.0, squares[j] / total - shift * shift));
    BOQ_CHECK(std::isfinite(shift) && std::isfinite(deviation), ErrorCode::kNotFinite,
              "expected finite vectors to train on, but dimension ", j,
              " of some row is not; embed the run again");
    const double mean = origin[j] + shift;
    result.mean.mutable_data_ptr<float>()[j] = static_cast<float>(mean);
    // Below this a dimension is constant up to rounding, and dividing by it would only blow the rounding up.
    if (deviation > 1e-6 * std::max(1.0, std::abs(mean)))
      result.std.mutable_data_ptr<float>()[j] = static_cast<float>(deviation);
  }
  return result;
}

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

Split split_of(const Transitions& data, double fraction) {
  Split split;
  int64_t successes = 0;
  for (int64_t e = 0; e < data.episodes(); ++e) {
    const auto i = static_cast<size_t>(e);
    const bool held_out = static_cast<double>(data.episode_split[i]) < fraction;
    auto& side = held_out ? split.validation : split.training;
    for (int64_t step = 0; step < data.episode_steps[i]; ++step) side.push_back(data.episode_first[i] + step);
    (held_out ? split.validation_episodes : split.training_episodes) += 1;
    successes += !held_out && data.episode_success[i] != 0;
  }
  if (split.training_episodes > 0)
    split.training_success_rate =
        static_cast<double>(successes) / static_cast<double>(split.training_episodes);
  return split;
}

void shuffle_outcomes(Transitions& data, double validation_fraction, uint64_t seed) {
  std::vector<size_t> episodes;
  for (size_t e = 0; e < data.episode_success.size(); ++e)
    if (static_cast<double>(data.episode_split[e]) >= validation_fraction) episodes.push_back(e);
  const uint64_t key = draw_key(seed, Draw::kShuffle);
  const auto last = [&](size_t e) {
    return static_cast<size_t>(data.episode_first[e] + data.episode_steps[e] - 1);
  };
  for (size_t i = episodes.size(); i > 1; --i) {
    const auto j = static_cast<size_t>(draw_index(key, i, static_cast<int64_t>(i)));
    std::swap(data.episode_success[episodes[i - 1]], data.episode_success[episodes[j]]);
    std::swap(data.reward[last(episodes[i - 1])], data.reward[last(episodes[j])]);
  }
}

Standardisers standardisers_for(const Transitions& data, const std::vector<int64_t>& training, double clip) {
  const auto statistics = [&](const RowStore& store, const std::vector<int64_t>& rows) {
    std::vector<int64_t> weight(static_cast<size_t>(store.size()));
    for (const int64_t i : training) ++weight[static_cast<size_t>(rows[static_cast<size_t>(i)])];
    return store.statistics(weight, clip);
  };
  return {statistics(data.states, data.state), statistics(data.actions, data.action),
          statistics(data.tasks, data.task)};
}

std::vector<float> discounted_returns(const Transitions& data, double gamma) {
  std::vector<float> returns(data.reward.size());
  double next = 0;
  for (size_t i = returns.size(); i-- > 0;) {
    next = data.reward[i] + (data.done[i] ? 0 : gamma * next);
    returns[i] = static_cast<float>(next);
  }
  return returns;
}

Sampler::Sampler(const Transitions& data, std::vector<int64_t> training, Standardisers standardisers,
                 const IqlConfig& config, at::Device device, at::ScalarType dtype)
    : data_(data),
      training_(std::move(training)),
      standardisers_(std::move(standardisers)),
      config_(config),
      device_(device),
      dtype_(dtype) {
  if (config.q_target == "outcome")
    returns_ = discounted_returns(data, 1);
  else if (config.q_target == "monte-carlo" || config.ranking > 0)
    returns_ = discounted_returns(data, config.gamma);
  if (config.ranking > 0) find_pairs();
}

std::vector<int64_t> Sampler::indices(int64_t step) const {
  const uint64_t key =
      draw_key(static_cast<uint64_t>(config_.seed), Draw::kSample, static_cast<uint64_t>(step));
  std::vector<int64_t> chosen(static_cast<size_t>(config_.batch_size));
  for (size_t i = 0; i < chosen.size(); ++i)
    chosen[i] = training_[static_cast<size_t>(draw_index(key, i, static_cast<int64_t>(training_.size())))];
  return chosen;
}

void Sampler::set_share(int rank, int size) {
  BOQ_CHECK(config_.batch_size % size == 0, ErrorCode::kConfigInvalid, "batchSize ", config_.batch_size,
            " cannot be divided equally among ", size, " processes");
  rank_ = rank;
  size_ = size;
}

Batch Sampler::batch(int64_t step) const {
  const std::vector<int64_t> all = indices(step);
  const size_t count = all.size() / static_cast<size_t>(size_), first = static_cast<size_t>(rank_) * count;
  const auto mine = std::span(all).subspan(first, count);
  Batch batch = batch_of(mine);
  batch.first_row = static_cast<int64_t>(first);
  if (config_.head_share < 1) batch.weight = head_weights(all, mine);
  if (config_.conservative > 0) {
    batch.candidates = candidates_of(mine);
    for (const int64_t t : std::span(all).first(first))
      batch.candidates.first_row +=
          data_.candidate_offset[static_cast<size_t>(t) + 1] - data_.candidate_offset[static_cast<size_t>(t)];
  }
  if (config_.ranking > 0) add_pairs(batch, step);
  return batch;
}

// Bootstrap masks as weights: a head's loss is the mean over its transitions of the whole batch.
at::Tensor Sampler::head_weights(std::span<const int64_t> all, std::span<const int64_t> mine) const {
  const auto count = static_cast<int64_t>(mine.size());
  at::Tensor weight = at::empty({config_.heads, count}, at::kFloat);
  for (int64_t k = 0; k < config_.heads; ++k) {
    const uint64_t key = draw_key(static_cast<uint64_t>(config_.seed), Draw::kMask, static_cast<uint64_t>(k));
    const auto belongs = [&](int64_t t) {
      return draw_unit(key, static_cast<uint64_t>(t)) < config_.head_share;
    };
    const auto total = std::max<int64_t>(1, std::count_if(all.begin(), all.end(), belongs));
    // Processes average their gradients, so each counts its share `size` times.
    const float each = static_cast<float>(size_) / static_cast<float>(total);
    float* row = weight.mutable_data_ptr<float>() + k * count;
    for (size_t i = 0; i < mine.size(); ++i) row[i] = belongs(mine[i]) ? each : 0.0f;
  }
  return weight.to(device_);
}

at::Tensor Sampler::rows(const RowStore& store, const Standardiser& standardiser,
                         std::span<const int64_t> ids) const {
  return store.gather(ids, standardiser, dtype_).to(device_);
}

// What a batch holds besides rows.
Batch Sampler::numbers_of(std::span<const int64_t> transitions) const {
  const auto count = static_cast<int64_t>(transitions.size());
  const bool bootstraps = config_.q_target == "td" || config_.q_target == "sarsa";
  at::Tensor reward = at::empty({1, count}, at::kFloat), discount = at::empty({1, count}, at::kFloat),
             outcome;
  if (!bootstraps) outcome = at::empty({1, count}, at::kFloat);
  for (size_t i = 0; i < transitions.size(); ++i) {
    const auto t = static_cast<size_t>(transitions[i]);
    // Where a limit is bootstrapped there is no next action: sarsa's episode ends there all the same.
    const bool over_limit = config_.bootstrap_timeouts && data_.timeout[t] && config_.q_target != "sarsa";
    const bool goes_on = (!data_.done[t] || over_limit) && data_.next_state[t] >= 0;
    reward.mutable_data_ptr<float>()[i] = data_.reward[t];
    discount.mutable_data_ptr<float>()[i] = goes_on ? static_cast<float>(config_.gamma) : 0.0f;
    if (!bootstraps) outcome.mutable_data_ptr<float>()[i] = returns_[t];
  }
  Batch batch;
  batch.reward = reward.to(device_);
  batch.discount = discount.to(device_);
  if (!bootstraps) batch.outcome = outcome.to(device_);
  return batch;
}

Batch Sampler::numbers_of_all() const {
  std::vector<int64_t> all(static_cast<size_t>(data_.size()));
  std::iota(all.begin(), all.end(), 0);
  return numbers_of(all);
}

Batch Sampler::batch_of(std::span<const int64_t> transitions) const {
  std::vector<int64_t> state, action, task, next_state, next_action;
  for (const int64_t transition : transitions) {
    const auto t = static_cast<size_t>(transition);
    state.push_back(data_.state[t]);
    action.push_back(data_.action[t]);
    task.push_back(data_.task[t]);
    next_state.push_back(data_.next_state[t]);
    next_action.push_back(data_.done[t] ? -1 : data_.action[t + 1]);
  }
  Batch batch = numbers_of(transitions);
  batch.state = rows(data_.states, standardisers_.state, state);
  batch.action = rows(data_.actions, standardisers_.action, action);
  batch.task = rows(data_.tasks, standardisers_.task, task);
  if (!batch.outcome.defined()) batch.next_state = rows(data_.states, standardisers_.state, next_state);
  if (config_.q_target == "sarsa")
    batch.next_action = rows(data_.actions, standardisers_.action, next_action);
  return batch;
}

Batch::Candidates Sampler::candidates_of(std::span<const int64_t> transitions) const {
  std::vector<int64_t> state, action, task, group, chosen;
  for (size_t i = 0; i < transitions.size(); ++i) {
    const auto t = static_cast<size_t>(transitions[i]);
    chosen.push_back(static_cast<int64_t>(action.size()) + data_.chosen[t]);
    for (int64_t c = data_.candidate_offset[t]; c < data_.candidate_offset[t + 1]; ++c) {
      state.push_back(data_.state[t]);
      task.push_back(data_.task[t]);
      action.push_back(data_.candidate_action[static_cast<size_t>(c)]);
      group.push_back(static_cast<int64_t>(i));
    }
  }
  return {rows(data_.states, standardisers_.state, state), rows(data_.actions, standardisers_.action, action),
          rows(data_.tasks, standardisers_.task, task), at::tensor(group).to(device_),
          at::tensor(chosen).to(device_)};
}

// Of every state and task that was met with actions of different return, each action against the next better
// one of another row: at most one pair a transition, so that a state met often does not swamp the rest.
void Sampler::find_pairs() {
  std::map<std::pair<int64_t, int64_t>, std::vector<int64_t>> met;
  for (const int64_t t : training_) {
    const auto i = static_cast<size_t>(t);
    met[{data_.state[i], data_.task[i]}].push_back(t);
  }
  for (auto& [where, visits] : met) {
    const auto value = [&](int64_t t) { return returns_[static_cast<size_t>(t)]; };
    std::stable_sort(visits.begin(), visits.end(), [&](int64_t a, int64_t b) { return value(a) > value(b); });
    for (size_t i = 1; i < visits.size(); ++i) {
      for (size_t j = i; j-- > 0;) {
        const bool other =
            data_.action[static_cast<size_t>(visits[j])] != data_.action[static_cast<size_t>(visits[i])];
        if (other && value(visits[j]) > value(visits[i])) {
          pairs_.emplace_back(visits[j], visits[i]);
          break;
        }
      }
    }
  }
}

void Sampler::add_pairs(Batch& batch, int64_t step) const {
  if (pairs_.empty()) return;
  const uint64_t key =
      draw_key(static_cast<uint64_t>(config_.seed), Draw::kPair, static_cast<uint64_t>(step));
  std::vector<int64_t> state, task, better, worse;
  const int64_t count = config_.batch_size / size_;
  batch.pairs.first_row = rank_ * count;
  for (int64_t i = batch.pairs.first_row; i < (rank_ + 1) * count; ++i) {
    const auto& [winner, loser] = pairs_[static_cast<size_t>(
        draw_index(key, static_cast<uint64_t>(i), static_cast<int64_t>(pairs_.size())))];
    state.push_back(data_.state[static_cast<size_t>(winner)]);
    task.push_back(data_.task[static_cast<size_t>(winner)]);
    better.push_back(data_.action[static_cast<size_t>(winner)]);
    worse.push_back(data_.action[static_cast<size_t>(loser)]);
  }
  batch.pairs.state = rows(data_.states, standardisers_.state, state);
  batch.pairs.task = rows(data_.tasks, standardisers_.task, task);
  batch.pairs.better = rows(data_.actions, standardisers_.action, better);
  batch.pairs.worse = rows(data_.actions, standardisers_.action, worse);
}

}  // namespace boq::iql
