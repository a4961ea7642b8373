// For programs with a main() of their own: libgomp reads its settings when it is loaded, before any code of
// ours.
#pragma once

#include <unistd.h>

#include <cstdlib>

namespace boq {

/// Starts the program anew with OMP_WAIT_POLICY=PASSIVE unless the variable is set. By default, threads spin
/// between parallel loops, and where another program wants the processor they then hinder one another
/// tenfold.
inline void wait_passively(char** argv) {
  if (std::getenv("OMP_WAIT_POLICY") != nullptr) return;
  ::setenv("OMP_WAIT_POLICY", "PASSIVE", 1);
  ::execv("/proc/self/exe", argv);  // where this fails, the program runs with the default
}

}  // namespace boq
