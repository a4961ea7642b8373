// Values across the boundary. Structured input comes as one JSON string (no getters, no proxies, no cycles);
// bulk data as typed arrays, copied on the JavaScript thread. Each reader throws boq::Error; `what` names the
// argument in the message.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "native/bindings/napi_setup.h"
#include "native/core/json.h"

namespace boq::bindings {

std::string read_string(const Napi::Value& value, const std::string& what);

/// An integer within [min, max].
int64_t read_int(const Napi::Value& value, const std::string& what, int64_t min, int64_t max);

/// An array; its elements are unchecked.
Napi::Array read_array(const Napi::Value& value, const std::string& what);

/// An object that is not null.
Napi::Object read_object(const Napi::Value& value, const std::string& what);

/// Copies of a typed array of exactly this element type, over a plain ArrayBuffer: detached, resizable and
/// shared ones are refused, since their memory may go away or change.
std::vector<float> read_floats(const Napi::Value& value, const std::string& what);
std::vector<int32_t> read_ints(const Napi::Value& value, const std::string& what);
std::vector<uint8_t> read_bytes(const Napi::Value& value, const std::string& what);

/// Plain objects, arrays, numbers (NaN kept), strings, booleans and null.
Napi::Value to_js(Napi::Env env, const Json& json);

/// A fresh Float32Array with the elements of a float32 CPU tensor in row-major order.
Napi::Value to_js(Napi::Env env, const at::Tensor& tensor);
Napi::Value to_js(Napi::Env env, const std::vector<int32_t>& values);

}  // namespace boq::bindings
