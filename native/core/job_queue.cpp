#include "native/core/job_queue.h"

#include <ATen/Parallel.h>
#include <pthread.h>

#include <map>
#include <utility>
#include <vector>

#include "native/core/device.h"

namespace boq {
namespace {

struct Registry {
  std::mutex mutex;
  std::map<std::string, std::weak_ptr<JobQueue>> queues;
};

// Never destroyed: jobs may still run while the process destroys its static objects.
Registry& registry() {
  static auto* const instance = new Registry;
  return *instance;
}

}  // namespace

std::shared_ptr<JobQueue> JobQueue::of(const std::string& device) {
  Registry& shared = registry();
  const std::lock_guard lock(shared.mutex);
  std::weak_ptr<JobQueue>& slot = shared.queues[device];
  std::shared_ptr<JobQueue> queue = slot.lock();
  if (!queue) {
    queue = std::make_shared<JobQueue>(device);
    slot = queue;
  }
  return queue;
}

bool JobQueue::halt_all(std::chrono::milliseconds limit) {
  // Leaked on purpose: dropping the last reference here would join a thread that may not end in time.
  auto& queues = *new std::vector<std::shared_ptr<JobQueue>>;
  {
    const std::lock_guard lock(registry().mutex);
    for (auto& [device, slot] : registry().queues) {
      if (auto queue = slot.lock()) queues.push_back(std::move(queue));
    }
  }
  for (const auto& queue : queues) queue->begin_halt();
  const auto deadline = std::chrono::steady_clock::now() + limit;
  bool idle = true;
  for (const auto& queue : queues) idle = queue->wait_idle(deadline) && idle;
  return idle;
}

JobQueue::JobQueue(const std::string& device) : thread_([this] { run(); }) {
  // Linux cuts thread names at 15 bytes.
  pthread_setname_np(thread_.native_handle(), ("boq " + device).substr(0, 15).c_str());
}

JobQueue::~JobQueue() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void JobQueue::post(std::shared_ptr<CancelFlag> cancel, std::function<void()> work) {
  {
    const std::lock_guard lock(mutex_);
    jobs_.push_back({std::move(cancel), std::move(work)});
  }
  changed_.notify_all();
}

void JobQueue::run() {
  // Intra-op threads are a setting of the calling thread in OpenMP, so this is where it must be made.
  at::set_num_threads(cpu_share());
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return stopping_ || (!halted_ && !jobs_.empty()); });
    if (jobs_.empty() || halted_) return;
    Job job = std::move(jobs_.front());
    jobs_.pop_front();
    running_ = job.cancel;
    lock.unlock();
    job.work();
    job = {};  // releases models and tensors on this thread
    lock.lock();
    running_ = nullptr;
    changed_.notify_all();
  }
}

void JobQueue::begin_halt() {
  const std::lock_guard lock(mutex_);
  halted_ = true;
  if (running_) running_->cancel();
}

bool JobQueue::wait_idle(std::chrono::steady_clock::time_point deadline) {
  std::unique_lock lock(mutex_);
  return changed_.wait_until(lock, deadline, [this] { return running_ == nullptr; });
}

}  // namespace boq
