// The safetensors format: a reader that maps a file and hands out views of it, a writer that publishes a file
// whole or not at all, and a model folder of one or many such files.
// Format: 8-byte little-endian header length n, n bytes of JSON, then the data. The reader enforces what the
// reference implementation does (no holes, no overlap, exact sizes) and never trusts a number of the header.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace boq {

/// One tensor of a file. `begin` and `end` are byte offsets in the data section.
struct TensorInfo {
  std::string name;
  at::ScalarType dtype;
  std::vector<int64_t> shape;
  uint64_t begin = 0;
  uint64_t end = 0;
};

using Metadata = std::map<std::string, std::string>;

/// What the JSON header of a file says. `tensors` is in the order of the data.
struct SafetensorsHeader {
  std::vector<TensorInfo> tensors;
  Metadata metadata;
};

/// Checks a header against the size of the data section behind it. Throws BOQ_FILE_CORRUPT (or
/// BOQ_DTYPE_UNSUPPORTED) with `where` in front. Apart from the file so that it can be tested on bytes.
SafetensorsHeader parse_safetensors_header(std::string_view json, uint64_t data_bytes,
                                           const std::string& where);

/// A mapped file. Copies share the mapping; a tensor keeps it alive on its own.
class SafetensorsFile {
 public:
  /// Throws BOQ_FILE_NOT_FOUND, BOQ_FILE_CORRUPT or BOQ_DTYPE_UNSUPPORTED.
  static SafetensorsFile open(const std::filesystem::path& path);

  const std::filesystem::path& path() const { return path_; }
  const std::vector<TensorInfo>& tensors() const { return header_.tensors; }
  const Metadata& metadata() const { return header_.metadata; }
  std::vector<std::string> names() const;
  bool contains(const std::string& name) const { return index_.count(name) > 0; }
  /// Throws BOQ_WEIGHTS_MISSING for an unknown name.
  const TensorInfo& info(const std::string& name) const;

  /// A view of the mapped data where it is aligned for its type, else a copy. Writing to it changes this
  /// process' pages only, never the file.
  at::Tensor tensor(const std::string& name) const;

  /// Lets the kernel drop the resident pages of a tensor that has been copied elsewhere; later reads fault
  /// them in again from the file.
  void release(const std::string& name) const;

 private:
  class Mapping;

  std::filesystem::path path_;
  std::shared_ptr<Mapping> mapping_;
  SafetensorsHeader header_;
  std::unordered_map<std::string, size_t> index_;
  uint64_t data_offset_ = 0;
};

/// All tensors of a model folder: `model.safetensors.index.json` with its shards, or one `model.safetensors`.
class SafetensorsFolder {
 public:
  /// Throws as SafetensorsFile::open, and BOQ_FILE_CORRUPT where the index disagrees with the shards or names
  /// a file outside the folder.
  static SafetensorsFolder open(const std::filesystem::path& folder);

  /// Sorted.
  std::vector<std::string> names() const;
  bool contains(const std::string& name) const { return owner_.count(name) > 0; }
  const TensorInfo& info(const std::string& name) const { return file(name).info(name); }
  at::Tensor tensor(const std::string& name) const { return file(name).tensor(name); }
  void release(const std::string& name) const { file(name).release(name); }
  const std::filesystem::path& path() const { return path_; }

 private:
  const SafetensorsFile& file(const std::string& name) const;

  std::filesystem::path path_;
  std::vector<SafetensorsFile> files_;
  std::map<std::string, size_t> owner_;
};

using NamedTensors = std::vector<std::pair<std::string, at::Tensor>>;

/// Writes `tensors` (any device, any strides) to `path`: a temporary file beside it, fsync, rename, fsync of
/// the folder, so that a reader sees the old file or the new one. Tensors are stored by falling element size,
/// else in the given order, so that all of them are aligned. Throws BOQ_FILE_WRITE (nothing is left behind),
/// BOQ_INVALID_ARGUMENT for a duplicate or reserved name, BOQ_DTYPE_UNSUPPORTED.
void write_safetensors(const std::filesystem::path& path, const NamedTensors& tensors,
                       const Metadata& metadata = {});

}  // namespace boq
