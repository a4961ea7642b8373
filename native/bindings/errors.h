// Failures as JavaScript errors: `error.code` is the stable BOQ_* code, `error.message` the text.
#pragma once

#include <optional>
#include <utility>

#include "native/bindings/napi_setup.h"
#include "native/core/job_queue.h"

namespace boq::bindings {

inline Napi::Error to_js_error(Napi::Env env, const Failure& failure) {
  Napi::Error error = Napi::Error::New(env, failure.message);
  error.Set("code", Napi::String::New(env, error_code_name(failure.code)));
  return error;
}

/// Runs the body of a function that JavaScript called: its C++ exceptions become JavaScript errors with a
/// code, errors that JavaScript itself threw meanwhile pass through.
template <class Body>
Napi::Value call_from_js(Napi::Env env, Body&& body) {
  Napi::Value result;
  std::optional<Napi::Error> thrown;
  const std::optional<Failure> failure = guarded([&] {
    try {
      result = body();
    } catch (const Napi::Error& error) {
      thrown = error;
    }
  });
  if (thrown) throw *thrown;
  if (failure) throw to_js_error(env, *failure);
  return result;
}

}  // namespace boq::bindings
