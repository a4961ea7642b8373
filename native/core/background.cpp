#include "native/core/background.h"

#include <ATen/Parallel.h>
#include <pthread.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <exception>
#include <thread>

namespace boq {
namespace {

// The kernel's `struct sched_attr` in its first form (sched_setattr(2)). Its own header cannot be included
// beside <sched.h>: both define `struct sched_param`.
struct Schedule {
  uint32_t size;
  uint32_t policy;
  uint64_t flags;
  int32_t nice;
  uint32_t priority;
  uint64_t runtime;
  uint64_t deadline;
  uint64_t period;
};
static_assert(sizeof(Schedule) == 48);

// The C library has no wrappers for these calls; 0 names the calling thread.
bool read_schedule(Schedule& schedule) {
  return ::syscall(SYS_sched_getattr, 0, &schedule, sizeof schedule, 0) == 0;
}

void ask_for_long_turns() {
  Schedule schedule{};
  if (!read_schedule(schedule) || schedule.policy != SCHED_OTHER) return;
  schedule.runtime = kBackgroundSlice;
  // Where a sandbox forbids the call, the work runs as any other.
  static_cast<void>(::syscall(SYS_sched_setattr, 0, &schedule, 0));
}

}  // namespace

void run_in_background(const std::function<void()>& work) {
  const int intra_op_threads = at::get_num_threads();
  std::exception_ptr failure;
  std::thread thread([&] {
    pthread_setname_np(pthread_self(), "boq background");
    ask_for_long_turns();
    at::set_num_threads(intra_op_threads);
    try {
      work();
    } catch (...) {
      failure = std::current_exception();
    }
  });
  thread.join();
  if (failure) std::rethrow_exception(failure);
}

uint64_t scheduling_slice() {
  Schedule schedule{};
  return read_schedule(schedule) ? schedule.runtime : 0;
}

}  // namespace boq
