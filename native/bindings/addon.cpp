#include "native/bindings/addon.h"

#include <stdlib.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <mutex>

#include "native/bindings/build_info.h"
#include "native/bindings/cancel_token.h"
#include "native/bindings/convert.h"
#include "native/bindings/embedder_wrap.h"
#include "native/bindings/errors.h"
#include "native/bindings/scorer_wrap.h"
#include "native/bindings/train.h"

namespace boq::bindings {
namespace {

constexpr std::chrono::milliseconds kHaltLimit{2000};

// process.exit() leaves jobs running while libtorch's static objects are destroyed, which crashes. So jobs
// are halted first; one that does not reach its next check in time makes the process leave without
// destructors. glibc's on_exit, unlike atexit, hands over the exit status.
void leave_without_crash(int status, void*) {
  if (JobQueue::halt_all(kHaltLimit)) return;
  std::fflush(nullptr);
  _exit(status);
}

}  // namespace

Addon::Addon(Napi::Env env, Napi::Object exports) : runner_(env) {
  static std::once_flag once;
  std::call_once(once, [] { on_exit(leave_without_crash, nullptr); });

  cancel_token_class_ = Napi::Persistent(CancelToken::define(env));
  embedder_class_ = Napi::Persistent(EmbedderWrap::define(env));
  scorer_class_ = Napi::Persistent(ScorerWrap::define(env));
  DefineAddon(exports, {
                           InstanceMethod<&Addon::build_info>("buildInfo", napi_enumerable),
                           InstanceMethod<&Addon::create_cancel_token>("createCancelToken", napi_enumerable),
                           InstanceMethod<&Addon::load_embedder>("loadEmbedder", napi_enumerable),
                           InstanceMethod<&Addon::load_scorer>("loadScorer", napi_enumerable),
                           InstanceMethod<&Addon::train>("train", napi_enumerable),
                           InstanceMethod<&Addon::halt>("halt", napi_enumerable),
                       });
}

Napi::Value Addon::build_info(const Napi::CallbackInfo& info) {
  return call_from_js(info.Env(), [&] { return to_js(info.Env(), bindings::build_info()); });
}

Napi::Value Addon::create_cancel_token(const Napi::CallbackInfo& info) {
  return call_from_js(info.Env(), [&] { return cancel_token_class_.New({}); });
}

Napi::Value Addon::load_embedder(const Napi::CallbackInfo& info) {
  return call_from_js(info.Env(), [&] { return EmbedderWrap::load(info); });
}

Napi::Value Addon::load_scorer(const Napi::CallbackInfo& info) {
  return call_from_js(info.Env(), [&] { return ScorerWrap::load(info); });
}

Napi::Value Addon::train(const Napi::CallbackInfo& info) { return bindings::train(info); }

Napi::Value Addon::halt(const Napi::CallbackInfo& info) {
  return call_from_js(info.Env(),
                      [&] { return Napi::Boolean::New(info.Env(), JobQueue::halt_all(kHaltLimit)); });
}

}  // namespace boq::bindings

using boq::bindings::Addon;
NODE_API_ADDON(Addon)
