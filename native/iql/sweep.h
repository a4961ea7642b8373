// Several models in one call: every combination of settings to compare, each with a name of its own.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "native/core/json.h"

namespace boq::iql {

/// Settings and the values to compare.
using Sweep = std::map<std::string, std::vector<Json>>;

/// One model of a sweep.
struct Variant {
  std::string name;  ///< what sets it apart, as a folder's name: tau-0.6-seed-0; empty where it is alone
  Json config;       ///< the settings of all, with its own values
};

/// Every combination of the sweep's values, each with `seeds` seeds from the configuration's on where that is
/// above 1: in the order of the settings' names, the last changing fastest, the seed faster still. Throws
/// BOQ_CONFIG_INVALID: a setting without values, seeds outside [1, 1000] or given twice, two models of one
/// name.
std::vector<Variant> variants_of(const Json& config, const Sweep& sweep, int64_t seeds);

}  // namespace boq::iql
