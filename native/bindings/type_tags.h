// Wrapped objects carry a random 128-bit tag, because unwrapping an object of another class would reinterpret
// its memory. Methods need no check of `this`: V8 verifies the receiver of class methods.
#pragma once

#include "native/bindings/napi_setup.h"

namespace boq::bindings {

inline constexpr napi_type_tag kCancelTokenTag{0x8f4b6d0f0d5c4a19, 0x93e1a7c2f60b58d4};

}  // namespace boq::bindings
