#include "native/bindings/job_runner.h"

#include <vector>

namespace boq::bindings {

JobRunner::JobRunner(Napi::Env env)
    : env_(env),
      channel_(Channel::New(env, "boq_native job", /*maxQueueSize=*/0, /*initialThreadCount=*/1, this)),
      mailbox_(std::make_shared<Mailbox>(channel_)) {
  // Only a pending job keeps the event loop alive.
  channel_.Unref(env);
  // Hooks run in reverse order, so the mailbox is closed before Node takes the channel down.
  env.AddCleanupHook([this] { shut_down(); });
}

void JobRunner::Mailbox::send(std::unique_ptr<Message> message) {
  const std::lock_guard lock(mutex_);
  if (open_ && channel_.NonBlockingCall(message.get()) == napi_ok) message.release();
}

void JobRunner::Mailbox::close() {
  const std::lock_guard lock(mutex_);
  open_ = false;
  channel_.Release();
}

void JobRunner::shut_down() {
  for (auto& [job, pending] : pending_) pending.cancel->cancel();
  mailbox_->close();
  pending_.clear();
}

void JobRunner::cancel(const std::shared_ptr<CancelFlag>& flag) {
  flag->cancel();
  std::vector<uint64_t> dropped;
  for (const auto& [job, pending] : pending_) {
    if (pending.cancel == flag && !pending.claimed->exchange(true)) dropped.push_back(job);
  }
  for (const uint64_t job : dropped) {
    settle(env_, job, Message{job, true, guarded([&] { flag->check(); }), nullptr});
  }
}

Napi::Promise JobRunner::enqueue(std::shared_ptr<JobQueue> queue, std::shared_ptr<CancelFlag> cancel,
                                 Napi::Function on_progress, std::function<ToJs(const JobContext&)> work) {
  const uint64_t job = next_job_++;
  Pending pending{Napi::Promise::Deferred::New(env_),         queue, cancel,
                  std::make_shared<std::atomic<bool>>(false), {},    {}};
  if (!on_progress.IsEmpty()) pending.on_progress = Napi::Persistent(on_progress);
  const Napi::Promise promise = pending.deferred.Promise();
  auto claimed = pending.claimed;
  if (pending_.empty()) channel_.Ref(env_);
  pending_.emplace(job, std::move(pending));

  queue->post(cancel, [job, cancel, claimed, mailbox = mailbox_, work = std::move(work)] {
    if (claimed->exchange(true)) return;
    auto message = std::make_unique<Message>(Message{job, true, std::nullopt, nullptr});
    const auto report = [&](Json json) {
      mailbox->send(std::make_unique<Message>(Message{
          job, false, std::nullopt, [json = std::move(json)](Napi::Env env) { return to_js(env, json); }}));
    };
    message->failure = guarded([&] {
      cancel->check();
      message->value = work(JobContext{*cancel, report});
    });
    mailbox->send(std::move(message));
  });
  return promise;
}

void JobRunner::receive(Napi::Env env, Napi::Function, JobRunner* runner, Message* raw) {
  const std::unique_ptr<Message> message(raw);
  if (static_cast<napi_env>(env) == nullptr) return;  // the environment is gone, and nobody waits
  const auto found = runner->pending_.find(message->job);
  if (found == runner->pending_.end()) return;
  if (message->settles) {
    runner->settle(env, message->job, *message);
  } else {
    runner->progress(env, found->second, *message);
  }
}

void JobRunner::progress(Napi::Env env, Pending& pending, const Message& message) {
  if (pending.on_progress.IsEmpty() || pending.callback_error) return;
  try {
    pending.on_progress.Call({message.value(env)});
  } catch (const Napi::Error& error) {
    pending.callback_error = error;
    pending.cancel->cancel();
  }
}

void JobRunner::settle(Napi::Env env, uint64_t job, const Message& message) {
  auto node = pending_.extract(job);
  Pending& pending = node.mapped();
  if (pending_.empty()) channel_.Unref(env);
  try {
    if (pending.callback_error) {
      pending.deferred.Reject(pending.callback_error->Value());
    } else if (message.failure) {
      pending.deferred.Reject(to_js_error(env, *message.failure).Value());
    } else {
      pending.deferred.Resolve(message.value(env));
    }
  } catch (const Napi::Error& error) {
    // The result did not fit into JavaScript's memory.
    pending.deferred.Reject(error.Value());
  }
}

}  // namespace boq::bindings
