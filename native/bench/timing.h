// What every benchmark measures with.
#pragma once

#include <sys/resource.h>

#include "native/core/clock.h"

namespace boq::bench {

using boq::Clock, boq::seconds_since;

/// Processor time of all threads: meaningful also where other processes share the machine.
inline double cpu_seconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
         1e-6 * static_cast<double>(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
}

}  // namespace boq::bench
