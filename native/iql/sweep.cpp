#include "native/iql/sweep.h"

#include <cctype>
#include <set>

#include "native/core/error.h"

namespace boq::iql {
namespace {

// A setting's value as a part of a folder's name: tau 0.6 -> tau-0.6, hidden [512, 64] -> hidden-512x64.
std::string name_of(const std::string& key, const Json& value) {
  std::string text;
  for (const char c : value.is_string() ? value.get<std::string>() : value.dump())
    if (c == ',')
      text += 'x';
    else if (std::isalnum(static_cast<unsigned char>(c)) || c == '.' || c == '-' || c == '+')
      text += c;
  return key + "-" + text;
}

}  // namespace

std::vector<Variant> variants_of(const Json& config, const Sweep& sweep, int64_t seeds) {
  std::vector<Variant> variants = {{"", config}};
  const auto multiply = [&](const std::string& key, const std::vector<Json>& values) {
    std::vector<Variant> next;
    for (const Variant& each : variants) {
      for (const Json& value : values) {
        next.push_back({each.name + (each.name.empty() ? "" : "-") + name_of(key, value), each.config});
        next.back().config[key] = value;
      }
    }
    variants = std::move(next);
  };
  for (const auto& [key, values] : sweep) {
    BOQ_CHECK(!values.empty(), ErrorCode::kConfigInvalid, "the sweep of ", key, " has no values");
    multiply(key, values);
  }
  BOQ_CHECK(seeds >= 1 && seeds <= 1000, ErrorCode::kConfigInvalid, "expected 1 to 1,000 seeds, got ", seeds);
  if (seeds > 1) {
    BOQ_CHECK(sweep.count("seed") == 0, ErrorCode::kConfigInvalid,
              "seeds and a sweep of seed exclude each other");
    const auto first = config.value("seed", int64_t{0});
    std::vector<Json> values;
    for (int64_t i = 0; i < seeds; ++i) values.emplace_back(first + i);
    multiply("seed", values);
  }
  std::set<std::string> names;
  for (const Variant& each : variants)
    BOQ_CHECK(names.insert(each.name).second, ErrorCode::kConfigInvalid,
              "two models of the sweep would be called ", each.name);
  return variants;
}

}  // namespace boq::iql
