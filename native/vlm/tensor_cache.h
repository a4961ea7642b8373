// Tensors by the exact bytes they were computed from; those not used for longest leave first.
#pragma once

#include <ATen/core/Tensor.h>

#include <list>
#include <string>
#include <string_view>
#include <unordered_map>

namespace boq::vlm {

/// Keys are compared whole, so two contents never share an entry.
class TensorCache {
 public:
  explicit TensorCache(int64_t max_bytes) : max_bytes_(max_bytes) {}

  /// Undefined where nothing is kept under `key`.
  at::Tensor find(const std::string& key) {
    const auto found = index_.find(key);
    if (found == index_.end()) return {};
    entries_.splice(entries_.begin(), entries_, found->second);
    return found->second->value;
  }

  /// `value` must not share memory with anything larger, or that stays alive with it.
  void keep(std::string key, at::Tensor value) {
    if (index_.count(key) > 0) return;
    entries_.push_front({std::move(key), std::move(value)});
    index_.emplace(entries_.front().key, entries_.begin());
    bytes_ += entries_.front().bytes();
    while (bytes_ > max_bytes_) {
      bytes_ -= entries_.back().bytes();
      index_.erase(entries_.back().key);
      entries_.pop_back();
    }
  }

  int64_t bytes() const { return bytes_; }

 private:
  struct Entry {
    std::string key;
    at::Tensor value;
    int64_t bytes() const { return static_cast<int64_t>(key.size() + value.nbytes()); }
  };

  int64_t max_bytes_;
  int64_t bytes_ = 0;
  std::list<Entry> entries_;
  std::unordered_map<std::string_view, std::list<Entry>::iterator> index_;
};

}  // namespace boq::vlm
