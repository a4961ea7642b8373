// All that belongs to one Node environment. Nothing of N-API is kept in static storage: the main thread and
// any number of workers load this addon side by side.
#pragma once

#include "native/bindings/job_runner.h"
#include "native/bindings/napi_setup.h"

namespace boq::bindings {

class Addon final : public Napi::Addon<Addon> {
 public:
  Addon(Napi::Env env, Napi::Object exports);

  static Addon& of(Napi::Env env) { return *env.GetInstanceData<Addon>(); }

  JobRunner& runner() { return runner_; }
  Napi::Function embedder_class() { return embedder_class_.Value(); }
  Napi::Function scorer_class() { return scorer_class_.Value(); }

 private:
  Napi::Value build_info(const Napi::CallbackInfo& info);
  Napi::Value create_cancel_token(const Napi::CallbackInfo& info);
  Napi::Value load_embedder(const Napi::CallbackInfo& info);
  Napi::Value load_scorer(const Napi::CallbackInfo& info);
  Napi::Value train(const Napi::CallbackInfo& info);
  Napi::Value halt(const Napi::CallbackInfo& info);

  JobRunner runner_;
  Napi::FunctionReference cancel_token_class_;
  Napi::FunctionReference embedder_class_;
  Napi::FunctionReference scorer_class_;
};

}  // namespace boq::bindings
