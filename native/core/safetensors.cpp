#include "native/core/safetensors.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <set>

#include "native/core/json.h"

namespace boq {

namespace {

constexpr uint64_t kMaxHeaderBytes = 100'000'000;  // the limit of the reference implementation
constexpr const char* kMetadataKey = "__metadata__";

struct DtypeName {
  const char* name;
  at::ScalarType type;
};

constexpr DtypeName kDtypes[] = {
    {"F64", at::kDouble},    {"I64", at::kLong},  {"F32", at::kFloat}, {"I32", at::kInt},
    {"BF16", at::kBFloat16}, {"F16", at::kHalf},  {"I16", at::kShort}, {"U8", at::kByte},
    {"I8", at::kChar},       {"BOOL", at::kBool},
};

const char* dtype_name(at::ScalarType type) {
  for (const auto& entry : kDtypes) {
    if (entry.type == type) return entry.name;
  }
  fail(ErrorCode::kDtypeUnsupported, "tensors of type ", c10::toString(type),
       " cannot be stored as safetensors");
}

at::ScalarType dtype_from_name(const JsonView& name) {
  const auto text = name.as_string();
  for (const auto& entry : kDtypes) {
    if (text == entry.name) return entry.type;
  }
  fail(ErrorCode::kDtypeUnsupported, name.where(), ": the data type '", text.substr(0, 40),
       "' is not supported; expected F64, F32, F16, BF16, I64, I32, I16, I8, U8 or BOOL");
}

/// product(shape) * element size, or rejects on overflow.
uint64_t byte_count(const std::vector<int64_t>& shape, uint64_t element_size, const JsonView& place) {
  uint64_t bytes = element_size;
  for (const auto dim : shape) {
    if (__builtin_mul_overflow(bytes, static_cast<uint64_t>(dim), &bytes))
      place.reject("the shape overflows 64 bits");
  }
  // A zero dimension hides an overflow of the others from the product, but not from the strides.
  int64_t strides = 1;
  for (const auto dim : shape) {
    if (__builtin_mul_overflow(strides, std::max<int64_t>(dim, 1), &strides)) {
      place.reject("the shape overflows 64 bits");
    }
  }
  return bytes;
}

std::string system_error() { return std::strerror(errno); }

class FileDescriptor {
 public:
  explicit FileDescriptor(int fd) : fd_(fd) {}
  FileDescriptor(const FileDescriptor&) = delete;
  FileDescriptor& operator=(const FileDescriptor&) = delete;
  ~FileDescriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  int get() const { return fd_; }
  /// Closes at once and says whether that succeeded: delayed write errors appear here.
  bool close() { return ::close(std::exchange(fd_, -1)) == 0; }

 private:
  int fd_;
};

}  // namespace

SafetensorsHeader parse_safetensors_header(std::string_view json, uint64_t data_bytes,
                                           const std::string& where) {
  BOQ_CHECK(!json.empty() && json.front() == '{', ErrorCode::kFileCorrupt, where,
            ": the header does not start with '{'; this is not a safetensors file");
  const auto document = parse_json(json, where, ErrorCode::kFileCorrupt, {kMaxHeaderBytes, 8});
  SafetensorsHeader header;
  for (const auto& [name, value] : document.items()) {
    const JsonView entry(value, where + ": " + name, ErrorCode::kFileCorrupt);
    if (name == kMetadataKey) {
      if (!value.is_object()) entry.reject("expected an object of strings");
      for (const auto& [key, text] : value.items()) header.metadata[key] = entry.at(key).as_string();
      continue;
    }
    if (!value.is_object() || value.size() != 3)
      entry.reject("expected dtype, shape and data_offsets, nothing else");
    TensorInfo info;
    info.name = name;
    info.dtype = dtype_from_name(entry.at("dtype"));
    info.shape = entry.at("shape").as_ints(0);
    BOQ_CHECK(info.shape.size() <= 64, ErrorCode::kFileCorrupt, entry.where(), ": more than 64 dimensions");
    const auto offsets = entry.at("data_offsets").as_ints(0);
    if (offsets.size() != 2 || offsets[0] > offsets[1]) entry.reject("data_offsets must be [begin, end]");
    info.begin = static_cast<uint64_t>(offsets[0]);
    info.end = static_cast<uint64_t>(offsets[1]);
    const auto expected = byte_count(info.shape, c10::elementSize(info.dtype), entry);
    if (info.end - info.begin != expected) {
      entry.reject("shape and type need ", expected, " bytes, data_offsets span ", info.end - info.begin);
    }
    header.tensors.push_back(std::move(info));
  }
  std::sort(header.tensors.begin(), header.tensors.end(), [](const TensorInfo& a, const TensorInfo& b) {
    return std::tie(a.begin, a.end, a.name) < std::tie(b.begin, b.end, b.name);
  });
  uint64_t covered = 0;
  for (const auto& info : header.tensors) {
    BOQ_CHECK(info.begin == covered, ErrorCode::kFileCorrupt, where, ": ", info.name, ": data starts at ",
              info.begin, ", the data before it ends at ", covered,
              info.begin < covered ? " (overlap)" : " (hole)");
    covered = info.end;
  }
  BOQ_CHECK(covered == data_bytes, ErrorCode::kFileCorrupt, where, ": the header describes ", covered,
            " bytes of data, the file holds ", data_bytes, "; it was cut or is still being written");
  return header;
}

class SafetensorsFile::Mapping {
 public:
  Mapping(int fd, size_t size) : size_(size) {
    // Private and writable: a stray in-place operation then changes a copy of the page instead of crashing.
    address_ = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_NORESERVE, fd, 0);
  }
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;
  ~Mapping() {
    if (is_valid()) ::munmap(address_, size_);
  }
  bool is_valid() const { return address_ != MAP_FAILED; }
  char* data() const { return static_cast<char*>(address_); }
  size_t size() const { return size_; }

 private:
  void* address_ = MAP_FAILED;
  size_t size_;
};

SafetensorsFile SafetensorsFile::open(const std::filesystem::path& path) {
  const auto where = path.string();
  const FileDescriptor fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  BOQ_CHECK(fd.get() >= 0, ErrorCode::kFileNotFound, where, ": cannot be opened: ", system_error());
  struct stat status {};
  BOQ_CHECK(::fstat(fd.get(), &status) == 0 && S_ISREG(status.st_mode), ErrorCode::kFileNotFound, where,
            ": not a regular file");
  const auto size = static_cast<uint64_t>(status.st_size);
  BOQ_CHECK(size >= 8, ErrorCode::kFileCorrupt, where, ": ", size,
            " bytes are too few for a safetensors file");

  SafetensorsFile file;
  file.path_ = path;
  file.mapping_ = std::make_shared<Mapping>(fd.get(), size);
  BOQ_CHECK(file.mapping_->is_valid(), ErrorCode::kOutOfMemory, where, ": cannot map ", size,
            " bytes: ", system_error());
  uint64_t header_bytes = 0;
  for (int i = 7; i >= 0; --i)
    header_bytes = header_bytes << 8 | static_cast<uint8_t>(file.mapping_->data()[i]);
  BOQ_CHECK(header_bytes <= kMaxHeaderBytes && header_bytes <= size - 8, ErrorCode::kFileCorrupt, where,
            ": a header of ", header_bytes, " bytes in a file of ", size,
            "; the file is cut or no safetensors file");
  file.data_offset_ = 8 + header_bytes;
  file.header_ =
      parse_safetensors_header({file.mapping_->data() + 8, header_bytes}, size - file.data_offset_, where);
  for (size_t i = 0; i < file.header_.tensors.size(); ++i) file.index_[file.header_.tensors[i].name] = i;
  return file;
}

std::vector<std::string> SafetensorsFile::names() const {
  std::vector<std::string> names;
  for (const auto& info : header_.tensors) names.push_back(info.name);
  return names;
}

const TensorInfo& SafetensorsFile::info(const std::string& name) const {
  const auto found = index_.find(name);
  BOQ_CHECK(found != index_.end(), ErrorCode::kWeightsMissing, path_.string(), ": holds no tensor '", name,
            "'");
  return header_.tensors[found->second];
}

at::Tensor SafetensorsFile::tensor(const std::string& name) const {
  const auto& entry = info(name);
  const auto options = at::TensorOptions().dtype(entry.dtype);
  char* data = mapping_->data() + data_offset_ + entry.begin;
  const bool is_aligned = reinterpret_cast<uintptr_t>(data) % c10::elementSize(entry.dtype) == 0;
  if (entry.begin == entry.end) return at::empty(entry.shape, options);
  if (entry.dtype == at::kBool) {
    // A C++ bool must be 0 or 1; a file may hold any byte.
    auto copy = at::empty(entry.shape, options);
    auto* out = copy.data_ptr<bool>();
    std::transform(data, data + (entry.end - entry.begin), out, [](char byte) { return byte != 0; });
    return copy;
  }
  if (!is_aligned) {
    auto copy = at::empty(entry.shape, options);
    std::memcpy(copy.data_ptr(), data, entry.end - entry.begin);
    return copy;
  }
  return at::from_blob(
      data, entry.shape, [mapping = mapping_](void*) {}, options);
}

void SafetensorsFile::release(const std::string& name) const {
  const auto& entry = info(name);
  const auto page = static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
  // Only pages that belong to this tensor alone.
  const auto begin = (data_offset_ + entry.begin + page - 1) / page * page;
  const auto end = (data_offset_ + entry.end) / page * page;
  if (begin < end) ::madvise(mapping_->data() + begin, end - begin, MADV_DONTNEED);
}

SafetensorsFolder SafetensorsFolder::open(const std::filesystem::path& folder) {
  SafetensorsFolder all;
  all.path_ = folder;
  const auto index_path = folder / "model.safetensors.index.json";
  if (!std::filesystem::exists(index_path)) {
    BOQ_CHECK(std::filesystem::exists(folder / "model.safetensors"), ErrorCode::kFileNotFound,
              folder.string(), ": holds neither model.safetensors nor model.safetensors.index.json");
    all.files_.push_back(SafetensorsFile::open(folder / "model.safetensors"));
    for (const auto& name : all.files_[0].names()) all.owner_[name] = 0;
    return all;
  }
  const auto document = read_json_file(index_path, ErrorCode::kFileCorrupt);
  const auto map = JsonView(document, index_path.string(), ErrorCode::kFileCorrupt).at("weight_map");
  if (!map.raw().is_object()) map.reject("expected an object of tensor name to file name");
  std::map<std::string, size_t> shards;
  for (const auto& [name, value] : map.raw().items()) {
    const auto entry = map.at(name);
    const auto shard = entry.as_string();
    if (shard.empty() || shard.find('/') != std::string::npos || shard.find('\0') != std::string::npos) {
      entry.reject("'", shard, "' is not the name of a file in the folder");
    }
    const auto [found, is_new] = shards.try_emplace(shard, all.files_.size());
    if (is_new) all.files_.push_back(SafetensorsFile::open(folder / shard));
    if (!all.files_[found->second].contains(name)) entry.reject("the tensor is not in ", shard);
    all.owner_[name] = found->second;
  }
  for (const auto& file : all.files_) {
    for (const auto& name : file.names()) {
      BOQ_CHECK(all.owner_.count(name) > 0, ErrorCode::kFileCorrupt, file.path().string(), ": the tensor '",
                name, "' is missing from the index");
    }
  }
  return all;
}

std::vector<std::string> SafetensorsFolder::names() const {
  std::vector<std::string> names;
  for (const auto& [name, owner] : owner_) names.push_back(name);
  return names;
}

const SafetensorsFile& SafetensorsFolder::file(const std::string& name) const {
  const auto found = owner_.find(name);
  BOQ_CHECK(found != owner_.end(), ErrorCode::kWeightsMissing, path_.string(), ": holds no tensor '", name,
            "'");
  return files_[found->second];
}

namespace {

void write_all(int fd, const void* data, size_t size, const std::string& where) {
  const auto* bytes = static_cast<const char*>(data);
  while (size > 0) {
    const auto written = ::write(fd, bytes, std::min<size_t>(size, 1 << 30));
    if (written < 0 && errno == EINTR) continue;
    BOQ_CHECK(written > 0, ErrorCode::kFileWrite, where, ": writing failed: ", system_error());
    bytes += written;
    size -= static_cast<size_t>(written);
  }
}

std::string header_text(const NamedTensors& tensors, const Metadata& metadata) {
  nlohmann::ordered_json header = nlohmann::ordered_json::object();
  if (!metadata.empty()) header[kMetadataKey] = metadata;
  uint64_t offset = 0;
  for (const auto& [name, tensor] : tensors) {
    const uint64_t bytes = tensor.nbytes();
    header[name] = {{"dtype", dtype_name(tensor.scalar_type())},
                    {"shape", tensor.sizes().vec()},
                    {"data_offsets", {offset, offset + bytes}}};
    offset += bytes;
  }
  std::string text;
  try {
    text = header.dump();
  } catch (const nlohmann::json::exception& error) {
    fail(ErrorCode::kInvalidArgument, "names and metadata of safetensors must be UTF-8: ", error.what());
  }
  text.resize((text.size() + 7) / 8 * 8, ' ');
  return text;
}

}  // namespace

void write_safetensors(const std::filesystem::path& path, const NamedTensors& tensors,
                       const Metadata& metadata) {
  static std::atomic<uint64_t> counter{0};
  auto ordered = tensors;
  std::set<std::string> names;
  for (const auto& [name, tensor] : ordered) {
    BOQ_CHECK(tensor.defined(), ErrorCode::kInvalidArgument, path.string(), ": the tensor '", name,
              "' is undefined");
    BOQ_CHECK(name != kMetadataKey && names.insert(name).second, ErrorCode::kInvalidArgument, path.string(),
              ": the tensor name '", name, "' is reserved or given twice");
  }
  std::stable_sort(ordered.begin(), ordered.end(), [](const auto& a, const auto& b) {
    return a.second.element_size() > b.second.element_size();
  });
  const auto header = header_text(ordered, metadata);

  std::ostringstream temporary_name;
  temporary_name << '.' << path.filename().string() << '.' << ::getpid() << '.' << counter++ << ".tmp";
  const auto temporary = path.parent_path() / temporary_name.str();
  const auto where = path.string();
  try {
    FileDescriptor fd(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644));
    BOQ_CHECK(fd.get() >= 0, ErrorCode::kFileWrite, where, ": cannot be created: ", system_error());
    unsigned char length[8];
    for (int i = 0; i < 8; ++i) length[i] = static_cast<unsigned char>(header.size() >> (8 * i));
    write_all(fd.get(), length, sizeof length, where);
    write_all(fd.get(), header.data(), header.size(), where);
    for (const auto& [name, tensor] : ordered) {
      const auto local = tensor.detach().cpu().contiguous();
      write_all(fd.get(), local.const_data_ptr(), local.nbytes(), where);
    }
    BOQ_CHECK(::fsync(fd.get()) == 0 && fd.close(), ErrorCode::kFileWrite, where,
              ": flushing failed: ", system_error());
    BOQ_CHECK(::rename(temporary.c_str(), path.c_str()) == 0, ErrorCode::kFileWrite, where,
              ": cannot be put in place: ", system_error());
  } catch (...) {
    ::unlink(temporary.c_str());
    throw;
  }
  const auto folder = path.has_parent_path() ? path.parent_path() : std::filesystem::path(".");
  const FileDescriptor fd(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (fd.get() >= 0) ::fsync(fd.get());
}

}  // namespace boq
