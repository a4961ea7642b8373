// Strict access to the tensors of a model folder: names are mapped once from the file's generation of names
// to one canonical form, every tensor is taken once with the shape the config implies, and nothing unknown
// may remain.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "native/core/safetensors.h"

namespace boq {

/// Names that start with `file` are known as `canonical` + the rest; an empty `canonical` means: skip the
/// tensor. The first rule that matches wins.
struct PrefixRule {
  std::string_view file;
  std::string_view canonical;
};

class WeightScope {
 public:
  /// `skipped_suffixes`: tensors that some writers add and nobody needs. Throws BOQ_WEIGHTS_UNEXPECTED for a
  /// name that no rule knows and for two names that map to the same one.
  WeightScope(SafetensorsFolder folder, const std::vector<PrefixRule>& rules,
              const std::vector<std::string_view>& skipped_suffixes);

  /// The scope of `name` + "."; shares the bookkeeping.
  WeightScope prefix(const std::string& name) const;
  std::string full_name(const std::string& name) const { return prefix_ + name; }

  /// A float32, bfloat16 or float16 tensor of exactly this shape: a view of the mapped file, see
  /// SafetensorsFile::tensor. Throws BOQ_WEIGHTS_MISSING, BOQ_SHAPE_MISMATCH, BOQ_DTYPE_UNSUPPORTED.
  at::Tensor take(const std::string& name, at::IntArrayRef shape) const;
  /// Says that a taken tensor was copied, so that its resident pages can go.
  void release(const std::string& name) const;

  /// Throws BOQ_WEIGHTS_UNEXPECTED where a mapped tensor was never taken.
  void expect_all_taken() const;

  /// The type of the first tensor of the folder in canonical order.
  at::ScalarType stored_dtype() const;
  /// Elements of all tensors taken so far.
  int64_t parameter_count() const;

 private:
  struct Shared;
  WeightScope(std::shared_ptr<Shared> shared, std::string prefix)
      : shared_(std::move(shared)), prefix_(std::move(prefix)) {}

  std::shared_ptr<Shared> shared_;
  std::string prefix_;
};

}  // namespace boq
