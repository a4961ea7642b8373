// buildInfo(): what this binary is and what it runs on, for the loader's version check and for the doctor.
#pragma once

#include "native/core/json.h"

namespace boq::bindings {

Json build_info();

}  // namespace boq::bindings
