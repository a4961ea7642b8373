// The embedder as a JavaScript object: info(), embed(items, token?), dispose().
#pragma once

#include <memory>

#include "native/bindings/model_handle.h"
#include "native/bindings/napi_setup.h"
#include "native/vlm/embedder.h"

namespace boq::bindings {

class EmbedderWrap final : public Napi::ObjectWrap<EmbedderWrap> {
 public:
  static Napi::Function define(Napi::Env env);
  /// loadEmbedder(options: string, token?): Promise<NativeEmbedder>
  static Napi::Value load(const Napi::CallbackInfo& info);

  /// Makes an empty handle, on which every method throws BOQ_DISPOSED; only load() fills one.
  explicit EmbedderWrap(const Napi::CallbackInfo& info);

 private:
  Napi::Value info(const Napi::CallbackInfo& info);
  Napi::Value embed(const Napi::CallbackInfo& info);
  Napi::Value dispose(const Napi::CallbackInfo& info);

  ModelHandle<vlm::Embedder> handle_{"Embedder"};
};

}  // namespace boq::bindings
