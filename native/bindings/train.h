// train(request: string, onProgress?, token?): one call a training run.
#pragma once

#include "native/bindings/napi_setup.h"

namespace boq::bindings {

Napi::Value train(const Napi::CallbackInfo& info);

}  // namespace boq::bindings
