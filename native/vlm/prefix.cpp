#include "native/vlm/prefix.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <map>
#include <numeric>

namespace boq::vlm {

namespace {

/// Shorter beginnings are not worth a segment of their own.
constexpr int64_t kFewestTokens = 8;
/// Every search looks at all of them.
constexpr size_t kMostPrefixes = 256;

int64_t common_length(const std::vector<int32_t>& a, const std::vector<int32_t>& b, int64_t limit) {
  limit = std::min({limit, static_cast<int64_t>(a.size()), static_cast<int64_t>(b.size())});
  return std::mismatch(a.begin(), a.begin() + limit, b.begin()).first - a.begin();
}

}  // namespace

int64_t StoredPrefix::bytes() const {
  auto total = static_cast<int64_t>(hidden.nbytes() + ids.size() * sizeof(int32_t));
  for (const auto& layer : layers) total += static_cast<int64_t>(layer.nbytes());
  return total;
}

PrefixMatch PrefixStore::find(const std::vector<int32_t>& ids, int64_t limit) {
  auto best = entries_.end();
  int64_t tokens = kFewestTokens - 1;
  for (auto entry = entries_.begin(); entry != entries_.end(); ++entry) {
    const auto common = common_length((*entry)->ids, ids, limit);
    if (common > tokens) {
      best = entry;
      tokens = common;
    }
  }
  if (best == entries_.end()) return {};
  entries_.splice(entries_.begin(), entries_, best);
  return {*best, tokens};
}

void PrefixStore::keep(StoredPrefix prefix) {
  for (auto entry = entries_.begin(); entry != entries_.end();) {
    const auto common = common_length((*entry)->ids, prefix.ids, prefix.tokens());
    if (common == prefix.tokens()) return;  // a longer one is there
    const bool is_continued = common == (*entry)->tokens();
    if (is_continued) bytes_ -= (*entry)->bytes();
    entry = is_continued ? entries_.erase(entry) : std::next(entry);
  }
  entries_.push_front(std::make_shared<const StoredPrefix>(std::move(prefix)));
  bytes_ += entries_.front()->bytes();
  while (bytes_ > max_bytes_ || entries_.size() > kMostPrefixes) {
    bytes_ -= entries_.back()->bytes();
    entries_.pop_back();
  }
}

std::vector<RowRange> first_rows(const std::vector<RowRange>& rows, int64_t tokens) {
  std::vector<RowRange> first;
  for (const auto& range : rows) {
    if (tokens <= 0) break;
    first.push_back({range.begin, std::min(range.end, range.begin + tokens)});
    tokens -= range.size();
  }
  return first;
}

namespace {

class SharingPlanner {
 public:
  explicit SharingPlanner(const std::vector<SharedText>& texts) : texts_(texts) {
    plan_.rows.resize(texts.size());
  }

  SharingPlan plan(PrefixStore* store) {
    if (store == nullptr) {
      for (size_t s = 0; s < texts_.size(); ++s) add_run(s, 0, length(s), {s});
      return std::move(plan_);
    }
    // Sequences with more in common than the store has match the same prefix of it equally far.
    struct Group {
      PrefixMatch match;
      std::vector<size_t> members;
    };
    std::vector<Group> groups;
    std::vector<int64_t> known;
    for (size_t s = 0; s < texts_.size(); ++s) {
      auto match = store->find(*texts_[s].ids, texts_[s].shareable);
      known.push_back(match.tokens);
      const auto same = std::find_if(groups.begin(), groups.end(), [&](const Group& group) {
        return group.match.prefix == match.prefix && group.match.tokens == match.tokens;
      });
      if (same == groups.end()) {
        groups.push_back({std::move(match), {s}});
      } else {
        same->members.push_back(s);
      }
    }
    for (const auto& group : groups) {
      if (!group.match.prefix) continue;
      const RowRange rows{plan_.stored_rows, plan_.stored_rows + group.match.tokens};
      for (const auto s : group.members) plan_.rows[s].push_back(rows);
      plan_.stored.push_back(group.match);
      plan_.stored_rows = rows.end;
    }
    next_row_ = plan_.stored_rows;
    for (const auto& group : groups) share(group.members, group.match.tokens, group.match.tokens, true);
    for (size_t s = 0; s < texts_.size(); ++s) {
      const auto before_image = texts_[s].shareable;
      if (before_image < length(s) && before_image - known[s] >= kFewestTokens) {
        plan_.wishes.push_back({s, before_image});
      }
    }
    return std::move(plan_);
  }

 private:
  int64_t length(size_t s) const { return static_cast<int64_t>(texts_[s].ids->size()); }

  /// Computes tokens [begin, end) of `owner` once for all of `members`, which have the same tokens before
  /// them.
  void add_run(size_t owner, int64_t begin, int64_t end, const std::vector<size_t>& members) {
    if (begin == end) return;
    plan_.runs.push_back({owner, begin, end, plan_.rows[owner]});
    const RowRange rows{next_row_, next_row_ + end - begin};
    for (const auto s : members) plan_.rows[s].push_back(rows);
    next_row_ = rows.end;
  }

  /// `members` agree in their first `agreed` tokens, of which the first `done` have rows.
  void share(const std::vector<size_t>& members, int64_t done, int64_t agreed, bool is_first) {
    if (members.size() == 1) return add_run(members[0], done, length(members[0]), members);
    const auto& first = texts_[members[0]];
    auto common = first.shareable;
    for (const auto s : members) {
      common = std::min(common, common_length(*first.ids, *texts_[s].ids, texts_[s].shareable));
    }
    agreed = std::max(agreed, common);
    if (agreed - done >= kFewestTokens) {
      add_run(members[0], done, agreed, members);
      if (is_first) plan_.wishes.push_back({members[0], agreed});
      is_first = false;
      done = agreed;
    }
    // Who ends here, or goes on with an image, goes on alone; the others part by their next token.
    std::map<int32_t, std::vector<size_t>> branches;
    for (const auto s : members) {
      if (texts_[s].shareable <= agreed) {
        add_run(s, done, length(s), {s});
      } else {
        branches[(*texts_[s].ids)[static_cast<size_t>(agreed)]].push_back(s);
      }
    }
    for (const auto& [id, branch] : branches) share(branch, done, agreed, is_first);
  }

  const std::vector<SharedText>& texts_;
  SharingPlan plan_;
  int64_t next_row_ = 0;
};

}  // namespace

SharingPlan plan_sharing(const std::vector<SharedText>& texts, PrefixStore* store) {
  return SharingPlanner(texts).plan(store);
}

}  // namespace boq::vlm
