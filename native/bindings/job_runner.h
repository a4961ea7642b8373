// Joins one Node environment (the main thread or a worker) to the process-wide job queues: a job runs on a
// device's thread, its promise settles on the environment's own thread.
//
// Nothing of N-API leaves the JavaScript thread. Promises and callbacks wait in `pending_`; a job knows them
// by number and sends messages through the Mailbox, which an ending environment closes. A job may therefore
// outlive its environment: its flag is set, it ends at its next check, its result is dropped.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <utility>

#include "native/bindings/convert.h"
#include "native/bindings/errors.h"
#include "native/bindings/napi_setup.h"
#include "native/core/control.h"
#include "native/core/job_queue.h"
#include "native/core/json.h"

namespace boq::bindings {

/// What a job sees of its caller.
struct JobContext {
  const CancelFlag& cancel;
  /// Hands one progress object to the caller's callback. Any thread; the caller throttles.
  std::function<void(Json)> report;
};

class JobRunner {
 public:
  explicit JobRunner(Napi::Env env);
  JobRunner(const JobRunner&) = delete;
  JobRunner& operator=(const JobRunner&) = delete;

  /// Queues `work` and returns the promise of `to_js(result)`. A job that was cancelled before it began fails
  /// with BOQ_ABORTED without running. If `on_progress` throws, the job is cancelled and the promise rejected
  /// with what was thrown.
  template <class Result>
  Napi::Promise run(std::shared_ptr<JobQueue> queue, std::shared_ptr<CancelFlag> cancel,
                    std::function<Result(const JobContext&)> work,
                    std::function<Napi::Value(Napi::Env, Result&)> to_js,
                    Napi::Function on_progress = Napi::Function()) {
    return enqueue(std::move(queue), std::move(cancel), on_progress,
                   [work = std::move(work), to_js = std::move(to_js)](const JobContext& context) -> ToJs {
                     auto result = std::make_shared<Result>(work(context));
                     return [result, to_js](Napi::Env env) { return to_js(env, *result); };
                   });
  }

  /// Sets the flag; jobs of this environment that wait with it and have not begun are rejected at once.
  void cancel(const std::shared_ptr<CancelFlag>& flag);

 private:
  using ToJs = std::function<Napi::Value(Napi::Env)>;

  struct Pending {
    Napi::Promise::Deferred deferred;
    /// Kept here, not in the job: the last reference joins the queue's thread.
    std::shared_ptr<JobQueue> queue;
    std::shared_ptr<CancelFlag> cancel;
    /// Set by whoever comes first: the device's thread that begins the job, or cancel() that drops it.
    std::shared_ptr<std::atomic<bool>> claimed;
    Napi::FunctionReference on_progress;
    std::optional<Napi::Error> callback_error;
  };

  struct Message {
    uint64_t job;
    bool settles;
    std::optional<Failure> failure;
    ToJs value;
  };

  static void receive(Napi::Env env, Napi::Function callback, JobRunner* runner, Message* message);
  using Channel = Napi::TypedThreadSafeFunction<JobRunner, Message, &JobRunner::receive>;

  /// The way from job threads to this environment, open until the environment ends.
  class Mailbox {
   public:
    explicit Mailbox(Channel channel) : channel_(std::move(channel)) {}
    void send(std::unique_ptr<Message> message);
    void close();

   private:
    std::mutex mutex_;
    bool open_ = true;
    Channel channel_;
  };

  Napi::Promise enqueue(std::shared_ptr<JobQueue> queue, std::shared_ptr<CancelFlag> cancel,
                        Napi::Function on_progress, std::function<ToJs(const JobContext&)> work);
  void progress(Napi::Env env, Pending& pending, const Message& message);
  void settle(Napi::Env env, uint64_t job, const Message& message);
  void shut_down();

  Napi::Env env_;
  Channel channel_;
  std::shared_ptr<Mailbox> mailbox_;
  std::unordered_map<uint64_t, Pending> pending_;
  uint64_t next_job_ = 0;
};

}  // namespace boq::bindings
