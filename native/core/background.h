// Long work that lets others go first without giving up its share.
#pragma once

#include <cstdint>
#include <functional>

namespace boq {

/// What `run_in_background` asks for: ten milliseconds a turn, in nanoseconds.
inline constexpr uint64_t kBackgroundSlice = 10'000'000;

/// Runs `work` on a thread of its own, which asks the scheduler for long turns, and returns when it has
/// ended, throwing what it threw.
///
/// From Linux 6.12 on, a thread that wakes with a shorter turn ahead of it, as the event loop has, then takes
/// the processor at once, and over time each still gets the same share: unlike a lower priority, this costs
/// the work nothing beside other programs, and needs no privilege. An older kernel ignores the request.
///
/// A thread of its own, because threads that `work` starts inherit the request, its OpenMP team among them,
/// and the caller's team exists already. The caller's number of intra-op threads holds in it.
void run_in_background(const std::function<void()>& work);

/// The calling thread's turn in nanoseconds; 0 where the kernel has no such setting.
uint64_t scheduling_slice();

}  // namespace boq
