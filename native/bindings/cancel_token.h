// `createCancelToken()`: what an AbortSignal becomes on this side of the boundary.
#pragma once

#include <memory>

#include "native/bindings/napi_setup.h"
#include "native/core/control.h"

namespace boq::bindings {

class CancelToken final : public Napi::ObjectWrap<CancelToken> {
 public:
  static Napi::Function define(Napi::Env env);
  explicit CancelToken(const Napi::CallbackInfo& info);

  /// The flag of a token that JavaScript passed; a fresh one for undefined. Throws BOQ_INVALID_ARGUMENT for
  /// anything else.
  static std::shared_ptr<CancelFlag> flag_of(const Napi::Value& value);

 private:
  Napi::Value cancel(const Napi::CallbackInfo& info);

  std::shared_ptr<CancelFlag> flag_ = std::make_shared<CancelFlag>();
};

}  // namespace boq::bindings
