// The Q-function as a JavaScript object: info(), score(batch), dispose().
#pragma once

#include <memory>

#include "native/bindings/model_handle.h"
#include "native/bindings/napi_setup.h"
#include "native/iql/scorer.h"

namespace boq::bindings {

class ScorerWrap final : public Napi::ObjectWrap<ScorerWrap> {
 public:
  static Napi::Function define(Napi::Env env);
  /// loadScorer(options: string): Promise<NativeScorer>
  static Napi::Value load(const Napi::CallbackInfo& info);

  /// Makes an empty handle, on which every method throws BOQ_DISPOSED; only load() fills one.
  explicit ScorerWrap(const Napi::CallbackInfo& info);

 private:
  Napi::Value info(const Napi::CallbackInfo& info);
  Napi::Value score(const Napi::CallbackInfo& info);
  Napi::Value dispose(const Napi::CallbackInfo& info);

  ModelHandle<iql::Scorer> handle_{"Scorer"};
};

}  // namespace boq::bindings
