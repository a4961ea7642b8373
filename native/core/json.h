// Typed, strict reads of JSON that somebody else wrote: every error names the file and the key path. The DOM
// is nlohmann/json; this header adds limits on size and depth, refuses duplicate keys, and turns every
// complaint into a boq::Error.
#pragma once

#include <cstdint>
#include <filesystem>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "native/core/error.h"
#include "nlohmann/json.hpp"

namespace boq {

using Json = nlohmann::json;

struct JsonLimits {
  uint64_t max_bytes = 64ull << 20;
  int max_depth = 64;
};

/// Parses `text`. `where` opens every message (usually the file name). Throws `code` for invalid JSON,
/// invalid UTF-8, duplicate keys, and anything beyond the limits.
Json parse_json(std::string_view text, const std::string& where, ErrorCode code = ErrorCode::kConfigInvalid,
                JsonLimits limits = {});

/// Reads and parses a whole file. Throws BOQ_FILE_NOT_FOUND where it cannot be read, else as parse_json.
Json read_json_file(const std::filesystem::path& path, ErrorCode code = ErrorCode::kConfigInvalid,
                    JsonLimits limits = {});

/// A value together with its place, e.g. "config.json: vision_config.depth". Cheap to copy; the Json must
/// outlive it. Every `as_*` throws `code` with the place, what was expected and what came.
class JsonView {
 public:
  JsonView(const Json& value, std::string where, ErrorCode code = ErrorCode::kConfigInvalid)
      : value_(&value), where_(std::move(where)), code_(code) {}

  const Json& raw() const { return *value_; }
  const std::string& where() const { return where_; }

  bool has(const std::string& key) const { return value_->is_object() && value_->contains(key); }
  /// True where the key is there and not null.
  bool has_value(const std::string& key) const { return has(key) && !value_->at(key).is_null(); }
  /// The member `key`; throws where this is no object or the key is missing.
  JsonView at(const std::string& key) const;
  JsonView at(size_t index) const;
  /// Number of elements; throws where this is no array.
  size_t size() const;

  int64_t as_int(int64_t min = std::numeric_limits<int64_t>::min(),
                 int64_t max = std::numeric_limits<int64_t>::max()) const;
  /// Finite and within [min, max].
  double as_double(double min = std::numeric_limits<double>::lowest(),
                   double max = std::numeric_limits<double>::max()) const;
  bool as_bool() const;
  std::string as_string() const;
  std::vector<int64_t> as_ints(int64_t min = std::numeric_limits<int64_t>::min(),
                               int64_t max = std::numeric_limits<int64_t>::max()) const;
  std::vector<double> as_doubles() const;

  int64_t int_or(const std::string& key, int64_t fallback, int64_t min = std::numeric_limits<int64_t>::min(),
                 int64_t max = std::numeric_limits<int64_t>::max()) const {
    return has_value(key) ? at(key).as_int(min, max) : fallback;
  }
  double double_or(const std::string& key, double fallback,
                   double min = std::numeric_limits<double>::lowest(),
                   double max = std::numeric_limits<double>::max()) const {
    return has_value(key) ? at(key).as_double(min, max) : fallback;
  }
  bool bool_or(const std::string& key, bool fallback) const {
    return has_value(key) ? at(key).as_bool() : fallback;
  }
  std::string string_or(const std::string& key, const std::string& fallback) const {
    return has_value(key) ? at(key).as_string() : fallback;
  }

  /// Throws `code` with the place in front.
  template <class... Parts>
  [[noreturn]] void reject(const Parts&... parts) const {
    fail(code_, where_, ": ", parts...);
  }

 private:
  [[noreturn]] void reject_type(const char* expected) const;

  const Json* value_;
  std::string where_;
  ErrorCode code_;
};

}  // namespace boq
