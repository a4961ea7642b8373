#include "native/iql/split.h"

#include <utility>

#include "native/iql/random.h"

namespace boq::iql {

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

}  // namespace boq::iql
