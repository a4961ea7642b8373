// What a long native job listens to and reports through. Plain C++, so the same loops run from Node, from the
// stand-alone trainer and from the tests.
#pragma once

#include <atomic>
#include <memory>

#include "native/core/error.h"

namespace boq {

/// Set from any thread; read by the job between batches or gradient steps.
class CancelFlag {
 public:
  void cancel() { cancelled_.store(true, std::memory_order_relaxed); }
  bool is_cancelled() const { return cancelled_.load(std::memory_order_relaxed); }
  /// Throws BOQ_ABORTED once cancel() was called.
  void check() const {
    if (is_cancelled()) fail(ErrorCode::kAborted, "the operation was aborted by its caller");
  }

 private:
  std::atomic<bool> cancelled_{false};
};

}  // namespace boq
