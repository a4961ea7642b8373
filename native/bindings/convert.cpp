#include "native/bindings/convert.h"

#include <ATen/ATen.h>

#include <cmath>
#include <cstring>

#include "native/core/error.h"

namespace boq::bindings {
namespace {

template <class Element>
std::vector<Element> read_typed_array(const Napi::Value& value, const std::string& what,
                                      napi_typedarray_type type, const char* type_name) {
  BOQ_CHECK(value.IsTypedArray(), ErrorCode::kInvalidArgument, what, " must be a ", type_name);
  const auto array = value.As<Napi::TypedArray>();
  BOQ_CHECK(array.TypedArrayType() == type, ErrorCode::kInvalidArgument, what, " must be a ", type_name,
            ", not another typed array");
  // napi_is_arraybuffer is false for a SharedArrayBuffer.
  const Napi::Value buffer = array.ArrayBuffer();
  BOQ_CHECK(buffer.IsArrayBuffer(), ErrorCode::kInvalidArgument, what,
            " lies over a SharedArrayBuffer, which another thread may write to; pass a copy");
  BOQ_CHECK(!buffer.As<Napi::ArrayBuffer>().IsDetached(), ErrorCode::kInvalidArgument, what,
            " is detached: its buffer was transferred elsewhere");
  const Napi::Value resizable = buffer.As<Napi::Object>().Get("resizable");
  BOQ_CHECK(!resizable.IsBoolean() || !resizable.As<Napi::Boolean>().Value(), ErrorCode::kInvalidArgument,
            what, " lies over a resizable ArrayBuffer; pass a copy");
  // No JavaScript runs between here and the copy, so the memory stays where it is.
  const auto elements = value.As<Napi::TypedArrayOf<Element>>();
  const size_t length = elements.ElementLength();
  std::vector<Element> copy(length);
  if (length > 0) std::memcpy(copy.data(), elements.Data(), length * sizeof(Element));
  return copy;
}

}  // namespace

std::string read_string(const Napi::Value& value, const std::string& what) {
  BOQ_CHECK(value.IsString(), ErrorCode::kInvalidArgument, what, " must be a string");
  return value.As<Napi::String>().Utf8Value();
}

int64_t read_int(const Napi::Value& value, const std::string& what, int64_t min, int64_t max) {
  BOQ_CHECK(value.IsNumber(), ErrorCode::kInvalidArgument, what, " must be an integer");
  const double number = value.As<Napi::Number>().DoubleValue();
  BOQ_CHECK(std::isfinite(number) && std::trunc(number) == number && number >= static_cast<double>(min) &&
                number <= static_cast<double>(max),
            ErrorCode::kInvalidArgument, what, " must be an integer from ", min, " to ", max, ", got ",
            number);
  return static_cast<int64_t>(number);
}

Napi::Array read_array(const Napi::Value& value, const std::string& what) {
  BOQ_CHECK(value.IsArray(), ErrorCode::kInvalidArgument, what, " must be an array");
  return value.As<Napi::Array>();
}

Napi::Object read_object(const Napi::Value& value, const std::string& what) {
  BOQ_CHECK(value.IsObject(), ErrorCode::kInvalidArgument, what, " must be an object");
  return value.As<Napi::Object>();
}

std::vector<float> read_floats(const Napi::Value& value, const std::string& what) {
  return read_typed_array<float>(value, what, napi_float32_array, "Float32Array");
}

std::vector<int32_t> read_ints(const Napi::Value& value, const std::string& what) {
  return read_typed_array<int32_t>(value, what, napi_int32_array, "Int32Array");
}

std::vector<uint8_t> read_bytes(const Napi::Value& value, const std::string& what) {
  return read_typed_array<uint8_t>(value, what, napi_uint8_array, "Uint8Array");
}

Napi::Value to_js(Napi::Env env, const Json& json) {
  switch (json.type()) {
    case Json::value_t::object: {
      Napi::Object object = Napi::Object::New(env);
      for (const auto& [key, member] : json.items()) object.Set(key, to_js(env, member));
      return object;
    }
    case Json::value_t::array: {
      Napi::Array array = Napi::Array::New(env, json.size());
      for (size_t i = 0; i < json.size(); ++i) array.Set(static_cast<uint32_t>(i), to_js(env, json[i]));
      return array;
    }
    case Json::value_t::string:
      return Napi::String::New(env, json.get_ref<const std::string&>());
    case Json::value_t::boolean:
      return Napi::Boolean::New(env, json.get<bool>());
    case Json::value_t::number_integer:
    case Json::value_t::number_unsigned:
    case Json::value_t::number_float:
      return Napi::Number::New(env, json.get<double>());
    default:
      return env.Null();
  }
}

Napi::Value to_js(Napi::Env env, const at::Tensor& tensor) {
  BOQ_CHECK(tensor.device().is_cpu() && tensor.scalar_type() == at::kFloat, ErrorCode::kInternal,
            "a result must be a float32 tensor on the CPU");
  const at::Tensor rows = tensor.contiguous();
  const auto length = static_cast<size_t>(rows.numel());
  auto array = Napi::Float32Array::New(env, length);
  if (length > 0) std::memcpy(array.Data(), rows.const_data_ptr<float>(), length * sizeof(float));
  return array;
}

Napi::Value to_js(Napi::Env env, const std::vector<int32_t>& values) {
  auto array = Napi::Int32Array::New(env, values.size());
  if (!values.empty()) std::memcpy(array.Data(), values.data(), values.size() * sizeof(int32_t));
  return array;
}

}  // namespace boq::bindings
