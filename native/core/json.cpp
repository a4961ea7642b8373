#include "native/core/json.h"

#include <cmath>
#include <fstream>
#include <set>

namespace boq {

namespace {

/// A short form of a value for messages: never the whole of a hostile document.
std::string excerpt(const Json& value) {
  if (value.is_structured()) return std::string(value.type_name()) + " of " + std::to_string(value.size());
  std::string text = value.dump(-1, ' ', true, Json::error_handler_t::replace);
  if (text.size() > 60) text = text.substr(0, 57) + "...";
  return text;
}

}  // namespace

Json parse_json(std::string_view text, const std::string& where, ErrorCode code, JsonLimits limits) {
  BOQ_CHECK(text.size() <= limits.max_bytes, code, where, ": ", text.size(), " bytes of JSON, the limit is ",
            limits.max_bytes);
  std::vector<std::set<std::string>> keys;
  const auto watch = [&](int depth, Json::parse_event_t event, Json& parsed) {
    switch (event) {
      case Json::parse_event_t::object_start:
      case Json::parse_event_t::array_start:
        BOQ_CHECK(depth < limits.max_depth, code, where, ": JSON nested deeper than ", limits.max_depth,
                  " levels");
        keys.emplace_back();
        break;
      case Json::parse_event_t::object_end:
      case Json::parse_event_t::array_end:
        keys.pop_back();
        break;
      case Json::parse_event_t::key:
        BOQ_CHECK(keys.back().insert(parsed.get<std::string>()).second, code, where, ": the key ",
                  excerpt(parsed), " occurs twice in one object");
        break;
      case Json::parse_event_t::value:
        break;
    }
    return true;
  };
  try {
    return Json::parse(text.begin(), text.end(), watch);
  } catch (const nlohmann::json::exception& error) {
    fail(code, where, ": not valid JSON: ", error.what());
  }
}

Json read_json_file(const std::filesystem::path& path, ErrorCode code, JsonLimits limits) {
  std::ifstream stream(path, std::ios::binary);
  BOQ_CHECK(stream && !std::filesystem::is_directory(path), ErrorCode::kFileNotFound, path.string(),
            ": cannot be read; a JSON file was expected here");
  std::string text;
  char block[1 << 16];
  while (stream.read(block, sizeof block) || stream.gcount() > 0) {
    text.append(block, static_cast<size_t>(stream.gcount()));
    if (text.size() > limits.max_bytes) break;
  }
  return parse_json(text, path.string(), code, limits);
}

void JsonView::reject_type(const char* expected) const {
  reject("expected ", expected, ", found ", excerpt(*value_));
}

JsonView JsonView::at(const std::string& key) const {
  if (!value_->is_object()) reject_type("an object");
  const auto found = value_->find(key);
  if (found == value_->end()) reject("the key '", key, "' is missing");
  const bool is_root = where_.find(": ") == std::string::npos;
  return JsonView(*found, where_ + (is_root ? ": " : ".") + key, code_);
}

JsonView JsonView::at(size_t index) const {
  if (index >= size()) reject("element ", index, " is missing");
  return JsonView((*value_)[index], where_ + "[" + std::to_string(index) + "]", code_);
}

size_t JsonView::size() const {
  if (!value_->is_array()) reject_type("an array");
  return value_->size();
}

int64_t JsonView::as_int(int64_t min, int64_t max) const {
  if (!value_->is_number_integer()) reject_type("an integer");
  if (value_->is_number_unsigned() && value_->get<uint64_t>() > static_cast<uint64_t>(max)) {
    reject("expected an integer in [", min, ", ", max, "], found ", excerpt(*value_));
  }
  const auto number = value_->get<int64_t>();
  if (number < min || number > max) {
    reject("expected an integer in [", min, ", ", max, "], found ", number);
  }
  return number;
}

double JsonView::as_double(double min, double max) const {
  if (!value_->is_number()) reject_type("a number");
  const auto number = value_->get<double>();
  if (!std::isfinite(number) || number < min || number > max) {
    reject("expected a number in [", min, ", ", max, "], found ", number);
  }
  return number;
}

bool JsonView::as_bool() const {
  if (!value_->is_boolean()) reject_type("true or false");
  return value_->get<bool>();
}

std::string JsonView::as_string() const {
  if (!value_->is_string()) reject_type("a string");
  return value_->get<std::string>();
}

std::vector<int64_t> JsonView::as_ints(int64_t min, int64_t max) const {
  std::vector<int64_t> numbers(size());
  for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = at(i).as_int(min, max);
  return numbers;
}

std::vector<double> JsonView::as_doubles() const {
  std::vector<double> numbers(size());
  for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = at(i).as_double();
  return numbers;
}

}  // namespace boq
