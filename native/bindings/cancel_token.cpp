#include "native/bindings/cancel_token.h"

#include "native/bindings/addon.h"
#include "native/bindings/errors.h"
#include "native/bindings/type_tags.h"

namespace boq::bindings {

Napi::Function CancelToken::define(Napi::Env env) {
  return DefineClass(env, "CancelToken", {InstanceMethod<&CancelToken::cancel>("cancel")});
}

CancelToken::CancelToken(const Napi::CallbackInfo& info) : ObjectWrap(info) {
  info.This().As<Napi::Object>().TypeTag(&kCancelTokenTag);
}

std::shared_ptr<CancelFlag> CancelToken::flag_of(const Napi::Value& value) {
  if (value.IsUndefined()) return std::make_shared<CancelFlag>();
  BOQ_CHECK(value.IsObject() && value.As<Napi::Object>().CheckTypeTag(&kCancelTokenTag),
            ErrorCode::kInvalidArgument, "token must be made by createCancelToken()");
  return Unwrap(value.As<Napi::Object>())->flag_;
}

Napi::Value CancelToken::cancel(const Napi::CallbackInfo& info) {
  return call_from_js(info.Env(), [&] {
    Addon::of(info.Env()).runner().cancel(flag_);
    return info.Env().Undefined();
  });
}

}  // namespace boq::bindings
