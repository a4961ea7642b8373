#include "native/core/weights.h"

#include <algorithm>
#include <map>
#include <set>
#include <sstream>

#include "native/core/error.h"

namespace boq {

struct WeightScope::Shared {
  SafetensorsFolder folder;
  std::map<std::string, std::string> file_names;  // canonical -> in the file
  std::set<std::string> taken;
  int64_t parameter_count = 0;

  const std::string& file_name(const std::string& canonical) const {
    const auto found = file_names.find(canonical);
    BOQ_CHECK(found != file_names.end(), ErrorCode::kWeightsMissing, folder.path().string(), ": the tensor '",
              canonical, "' is missing; the files do not fit config.json");
    return found->second;
  }
};

WeightScope::WeightScope(SafetensorsFolder folder, const std::vector<PrefixRule>& rules,
                         const std::vector<std::string_view>& skipped_suffixes)
    : shared_(std::make_shared<Shared>()) {
  for (const auto& name : folder.names()) {
    const auto is_suffix = [&](std::string_view suffix) { return name.ends_with(suffix); };
    if (std::any_of(skipped_suffixes.begin(), skipped_suffixes.end(), is_suffix)) continue;
    const auto rule = std::find_if(rules.begin(), rules.end(), [&](const PrefixRule& candidate) {
      return name.starts_with(candidate.file);
    });
    BOQ_CHECK(rule != rules.end(), ErrorCode::kWeightsUnexpected, folder.path().string(), ": the tensor '",
              name, "' belongs to no known part of the model");
    if (rule->canonical.empty()) continue;
    const auto canonical = std::string(rule->canonical) + name.substr(rule->file.size());
    const auto [existing, is_new] = shared_->file_names.emplace(canonical, name);
    BOQ_CHECK(is_new, ErrorCode::kWeightsUnexpected, folder.path().string(), ": the tensors '",
              existing->second, "' and '", name, "' are the same weight under two names");
  }
  shared_->folder = std::move(folder);
}

WeightScope WeightScope::prefix(const std::string& name) const {
  return WeightScope(shared_, prefix_ + name + ".");
}

at::Tensor WeightScope::take(const std::string& name, at::IntArrayRef shape) const {
  const auto canonical = full_name(name);
  const auto& file_name = shared_->file_name(canonical);
  const auto& info = shared_->folder.info(file_name);
  if (at::IntArrayRef(info.shape) != shape) {
    std::ostringstream message;
    message << shared_->folder.path().string() << ": the tensor '" << file_name << "' has shape "
            << at::IntArrayRef(info.shape) << ", config.json implies " << shape;
    throw Error(ErrorCode::kShapeMismatch, message.str());
  }
  BOQ_CHECK(info.dtype == at::kFloat || info.dtype == at::kBFloat16 || info.dtype == at::kHalf,
            ErrorCode::kDtypeUnsupported, shared_->folder.path().string(), ": the tensor '", file_name,
            "' has type ", c10::toString(info.dtype), "; expected float32, bfloat16 or float16");
  auto tensor = shared_->folder.tensor(file_name);
  if (shared_->taken.insert(canonical).second) shared_->parameter_count += tensor.numel();
  return tensor;
}

void WeightScope::release(const std::string& name) const {
  shared_->folder.release(shared_->file_name(full_name(name)));
}

void WeightScope::expect_all_taken() const {
  for (const auto& [canonical, file_name] : shared_->file_names) {
    BOQ_CHECK(shared_->taken.count(canonical) > 0, ErrorCode::kWeightsUnexpected,
              shared_->folder.path().string(), ": the tensor '", file_name,
              "' has no place in the model that config.json describes");
  }
}

at::ScalarType WeightScope::stored_dtype() const {
  BOQ_CHECK(!shared_->file_names.empty(), ErrorCode::kWeightsMissing, shared_->folder.path().string(),
            ": holds no tensors");
  return shared_->folder.info(shared_->file_names.begin()->second).dtype;
}

int64_t WeightScope::parameter_count() const { return shared_->parameter_count; }

}  // namespace boq
