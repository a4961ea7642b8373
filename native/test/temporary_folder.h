// A folder of its own for a test, removed with everything in it; and what lies in its files.
#pragma once

#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "native/core/error.h"

namespace boq::test {

class TemporaryFolder {
 public:
  TemporaryFolder() {
    auto pattern = (std::filesystem::temp_directory_path() / "boq-test-XXXXXX").string();
    BOQ_CHECK(::mkdtemp(pattern.data()) != nullptr, ErrorCode::kFileWrite,
              "cannot make a folder for the test");
    path_ = pattern;
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  ~TemporaryFolder() { std::filesystem::remove_all(path_); }

  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path operator/(const std::string& name) const { return path_ / name; }

  std::filesystem::path write(const std::string& name, const std::string& bytes) const {
    std::ofstream stream(path_ / name, std::ios::binary);
    stream << bytes;
    return path_ / name;
  }

 private:
  std::filesystem::path path_;
};

/// Empty where there is no such file.
inline std::string read_bytes(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(file), {});
}

}  // namespace boq::test
