// One FIFO thread a device runs every native job of the process, so that jobs never overlap on a device and
// libtorch's thread-local state (guards, intra-op threads, CUDA context) lives in one place. Plain C++: who
// waits for a job, and how it is told, is the caller's business (native/bindings/job_runner.h). A job may do
// its work on a thread of its own while the queue waits for it (native/core/background.h).
#pragma once

#include <c10/util/Exception.h>

#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <string>
#include <thread>

#include "native/core/control.h"
#include "native/core/error.h"

namespace boq {

/// What a job failed with, free of exception types.
struct Failure {
  ErrorCode code;
  std::string message;
};

/// Runs `work` and turns whatever it throws into a Failure: the one place where exceptions are translated.
template <class Work>
std::optional<Failure> guarded(Work&& work) noexcept {
  try {
    work();
    return std::nullopt;
  } catch (const Error& error) {
    return Failure{error.code(), error.what()};
  } catch (const c10::OutOfMemoryError& error) {
    return Failure{ErrorCode::kOutOfMemory, error.what_without_backtrace()};
  } catch (const c10::Error& error) {
    // what() would append a C++ backtrace.
    return Failure{ErrorCode::kTorch, error.what_without_backtrace()};
  } catch (const std::bad_alloc&) {
    return Failure{ErrorCode::kOutOfMemory, "the host's memory is exhausted"};
  } catch (const std::exception& error) {
    return Failure{ErrorCode::kInternal, error.what()};
  } catch (...) {
    return Failure{ErrorCode::kInternal, "unknown native exception"};
  }
}

class JobQueue {
 public:
  /// The queue of `device` ("cpu", "cuda:0"), shared by all Node environments of the process. Its thread
  /// starts here and ends with the last reference.
  static std::shared_ptr<JobQueue> of(const std::string& device);

  /// For process exit: cancels the running jobs of all queues, starts no further one, and waits up to `limit`
  /// until none runs. Returns whether that is so. Afterwards queues accept jobs but run none.
  static bool halt_all(std::chrono::milliseconds limit);

  explicit JobQueue(const std::string& device);
  /// Runs what is queued (cancel it first), then joins the thread. Never called on the queue's own thread,
  /// because no job holds a reference to its queue.
  ~JobQueue();
  JobQueue(const JobQueue&) = delete;
  JobQueue& operator=(const JobQueue&) = delete;

  /// Appends a job. `work` must not throw; it and what it holds are destroyed on the queue's thread. `cancel`
  /// is what halt_all sets while the job runs.
  void post(std::shared_ptr<CancelFlag> cancel, std::function<void()> work);

 private:
  struct Job {
    std::shared_ptr<CancelFlag> cancel;
    std::function<void()> work;
  };

  void run();
  void begin_halt();
  bool wait_idle(std::chrono::steady_clock::time_point deadline);

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Job> jobs_;
  std::shared_ptr<CancelFlag> running_;  // the running job's flag, else null
  bool stopping_ = false;
  bool halted_ = false;
  std::thread thread_;  // last: it uses all of the above
};

}  // namespace boq
